// What kube-scheduler itself says of pods and nodes, for the test that holds Fluxqueue's answers against its own
// (tests/kubernetes).
//
//	kube-filters filter   reads worlds, one a line:
//	                      {"nodes":[Node…],"bound":[Pod…],"pods":[Pod…],"runtimeClasses":[…],"limitRanges":[…]}
//	                      A bound pod has a spec.nodeName. Writes an answer a line, lists in the order of the world's:
//	                      {"bound":[Pod…],"limitRanges":[…],
//	                       "pods":[{"pod":Pod,"invalid":"…","why":["","Insufficient cpu",…]}…]}
//	                      What comes back is as the API server makes it; "invalid" says why it would not take a pod;
//	                      "why" has for each node why the pod cannot run there, empty where it can.
//	kube-filters fields   writes the fields of the API that a pod's maker can set: {"PodSpec":["affinity",…],…}
//
// The filters are those of kube-scheduler's default profile, run as kube-scheduler runs them. Defaults, the admission
// plugins RuntimeClass and LimitRanger, and validation are the API server's. Nothing is asked of a cluster.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
)

type world struct {
	Nodes          []*v1.Node             `json:"nodes"`
	Bound          []*v1.Pod              `json:"bound"`
	Pods           []*v1.Pod              `json:"pods"`
	RuntimeClasses []*nodev1.RuntimeClass `json:"runtimeClasses"`
	LimitRanges    []*v1.LimitRange       `json:"limitRanges"`
}

type verdict struct {
	Pod     *v1.Pod  `json:"pod"`
	Invalid string   `json:"invalid"`
	Why     []string `json:"why"`
}

type answer struct {
	Bound       []*v1.Pod        `json:"bound"`
	LimitRanges []*v1.LimitRange `json:"limitRanges"`
	Pods        []verdict        `json:"pods"`
}

// The world that is looked at: plugins are given their lister once, when they are made.
type currentWorld struct{ framework.SharedLister }

type scheduler struct {
	world   *currentWorld
	filters framework.Framework
}

func newScheduler(ctx context.Context, client kubernetes.Interface) (*scheduler, error) {
	metrics.Register()
	config, err := latest.Default()
	if err != nil {
		return nil, err
	}
	world := &currentWorld{cache.NewEmptySnapshot()}
	filters, err := runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), &config.Profiles[0],
		runtime.WithClientSet(client),
		runtime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
		runtime.WithSnapshotSharedLister(world))
	return &scheduler{world, filters}, err
}

// As kube-scheduler's findNodesThatFitPod.
func (s *scheduler) why(ctx context.Context, pod *v1.Pod, nodes []*v1.Node) ([]string, error) {
	state := framework.NewCycleState()
	only, status, _ := s.filters.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	why := make([]string, len(nodes))
	for i, node := range nodes {
		if !status.IsSuccess() {
			why[i] = status.Message()
			continue
		}
		if !only.AllNodes() && !only.NodeNames.Has(node.Name) {
			why[i] = "is none of the nodes that the pod names"
			continue
		}
		info, err := s.world.NodeInfos().Get(node.Name)
		if err != nil {
			return nil, err
		}
		filtered := s.filters.RunFilterPlugins(ctx, state, pod, info)
		if !filtered.IsSuccess() && !filtered.IsRejected() {
			return nil, filtered.AsError()
		}
		why[i] = filtered.Message()
		if !filtered.IsSuccess() && why[i] == "" {
			return nil, fmt.Errorf("pod %s, node %s: no reason from %s", pod.Name, node.Name, filtered.Plugin())
		}
	}
	return why, nil
}

// Makes of pods what the API server makes of them.
type apiServer struct {
	informers     informers.SharedInformerFactory
	runtimeClass  *runtimeclass.RuntimeClass
	limitRanger   *limitranger.LimitRanger
	anyLimitRange bool
}

func newAPIServer(client kubernetes.Interface) (*apiServer, error) {
	limitRanger, err := limitranger.NewLimitRanger(nil)
	if err != nil {
		return nil, err
	}
	server := &apiServer{informers.NewSharedInformerFactory(client, 0), runtimeclass.NewRuntimeClass(), limitRanger, false}
	for _, plugin := range []interface {
		SetExternalKubeClientSet(kubernetes.Interface)
		SetExternalKubeInformerFactory(informers.SharedInformerFactory)
		SetReadyFunc(admission.ReadyFunc)
	}{server.runtimeClass, server.limitRanger} {
		plugin.SetExternalKubeClientSet(client)
		plugin.SetExternalKubeInformerFactory(server.informers)
		plugin.SetReadyFunc(func() bool { return true })
	}
	return server, nil
}

func (s *apiServer) enter(w *world) error {
	var classes, ranges []any
	for _, class := range w.RuntimeClasses {
		classes = append(classes, class)
	}
	for _, limitRange := range w.LimitRanges {
		corev1.SetObjectDefaults_LimitRange(limitRange)
		ranges = append(ranges, limitRange)
	}
	s.anyLimitRange = len(ranges) > 0
	if err := s.informers.Node().V1().RuntimeClasses().Informer().GetIndexer().Replace(classes, ""); err != nil {
		return err
	}
	return s.informers.Core().V1().LimitRanges().Informer().GetIndexer().Replace(ranges, "")
}

func (s *apiServer) admit(ctx context.Context, pod *core.Pod) error {
	attributes := admission.NewAttributesRecord(pod, nil, core.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name,
		core.Resource("pods").WithVersion("v1"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	if s.anyLimitRange { // Without any it would ask a cluster for them.
		if err := s.limitRanger.Admit(ctx, attributes, nil); err != nil {
			return err
		}
	}
	return s.runtimeClass.Admit(ctx, attributes, nil)
}

// Why the API server would not take the pod.
func (s *apiServer) complete(ctx context.Context, pod *v1.Pod) (string, error) {
	corev1.SetObjectDefaults_Pod(pod)
	var internal core.Pod
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return "", err
	}
	if err := s.admit(ctx, &internal); err != nil {
		return err.Error(), nil
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	options.ResourceIsPod = true
	if errs := validation.ValidatePodCreate(&internal, options); len(errs) != 0 {
		return errs.ToAggregate().Error(), nil
	}
	var made v1.Pod
	if err := corev1.Convert_core_Pod_To_v1_Pod(&internal, &made, nil); err != nil {
		return "", err
	}
	// As kube-scheduler has it, which shares no memory with the API server.
	text, err := json.Marshal(made)
	if err != nil {
		return "", err
	}
	*pod = v1.Pod{}
	return "", json.Unmarshal(text, pod)
}

func look(ctx context.Context, server *apiServer, scheduler *scheduler, w *world) (*answer, error) {
	if err := server.enter(w); err != nil {
		return nil, err
	}
	for _, pod := range w.Bound {
		if invalid, err := server.complete(ctx, pod); err != nil || invalid != "" {
			return nil, fmt.Errorf("bound pod %s: %s %w", pod.Name, invalid, err)
		}
	}
	scheduler.world.SharedLister = cache.NewSnapshot(w.Bound, w.Nodes)
	result := &answer{Bound: w.Bound, LimitRanges: w.LimitRanges}
	for _, pod := range w.Pods {
		invalid, err := server.complete(ctx, pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		why, err := scheduler.why(ctx, pod, w.Nodes)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		result.Pods = append(result.Pods, verdict{pod, invalid, why})
	}
	return result, nil
}

func filter(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Nobody connects: what is not in the world is not there.
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		return err
	}
	scheduler, err := newScheduler(ctx, client)
	if err != nil {
		return err
	}
	server, err := newAPIServer(client)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	encoder := json.NewEncoder(out)
	for line := 1; ; line++ {
		var w world
		if err := decoder.Decode(&w); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("world %d: %w", line, err)
		}
		answer, err := look(ctx, server, scheduler, &w)
		if err != nil {
			return fmt.Errorf("world %d: %w", line, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
}

// The JSON names of the fields, those of embedded structs with them.
func namesOf(of reflect.Type) []string {
	var names []string
	for i := 0; i < of.NumField(); i++ {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			names = append(names, namesOf(field.Type)...)
		} else {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func fields(out io.Writer) error {
	result := map[string][]string{}
	for _, of := range []any{
		v1.PodSpec{}, v1.Affinity{}, v1.NodeAffinity{}, v1.PodAffinity{}, v1.PodAntiAffinity{}, v1.NodeSelectorTerm{},
		v1.Toleration{}, v1.TopologySpreadConstraint{}, v1.Container{}, v1.ResourceRequirements{}, v1.ContainerPort{},
		v1.Volume{},
	} {
		result[reflect.TypeOf(of).Name()] = namesOf(reflect.TypeOf(of))
	}
	return json.NewEncoder(out).Encode(result)
}

func main() {
	command := ""
	if len(os.Args) == 2 {
		command = os.Args[1]
	}
	out := bufio.NewWriter(os.Stdout)
	var err error
	switch command {
	case "filter":
		err = filter(os.Stdin, out)
	case "fields":
		err = fields(out)
	default:
		err = fmt.Errorf("usage: kube-filters filter|fields")
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube-filters:", err)
		os.Exit(1)
	}
}
