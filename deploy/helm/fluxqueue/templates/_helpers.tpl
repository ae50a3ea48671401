{{/* Labels of an object. The argument: (list CONTEXT COMPONENT); COMPONENT may be empty. */}}
{{- define "fluxqueue.labels" -}}
{{- $root := index . 0 -}}
{{ include "fluxqueue.selector" . }}
app.kubernetes.io/part-of: fluxqueue
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{/* What finds the pods of a component. */}}
{{- define "fluxqueue.selector" -}}
app.kubernetes.io/name: fluxqueue
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* The name of a service's image: (list CONTEXT SERVICE). */}}
{{- define "fluxqueue.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- $registry := required "image.registry: say where Fluxqueue's images are, such as image.registry=registry.example/hpc (deploy/images/README.md: how they are built and pushed), or image.registry=localhost where each node has been given them by hand" $image.registry -}}
{{ trimSuffix "/" $registry }}/{{ $image.repository }}/{{ index . 1 }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- with index $image.digests (index . 1) }}@{{ . }}{{ end }}
{{- end }}

{{/* A container's image, (list CONTEXT NAME). Nobody answers for localhost: what is missing there is not asked for. */}}
{{- define "fluxqueue.imageOf" -}}
image: {{ index . 1 }}
imagePullPolicy: {{ ternary "Never" (index . 0).Values.image.pullPolicy (hasPrefix "localhost/" (index . 1)) }}
{{- end }}

{{- define "fluxqueue.kafka" -}}
{{- if .Values.kafka.bundled.enabled -}}
plaintext://fluxqueue-kafka.{{ .Release.Namespace }}.svc:9092
{{- else if contains "@" .Values.kafka.bootstrap -}}
{{ fail "kafka.bootstrap: everybody can read it: it is host:port,…; put user and password into client.properties of a Secret (sasl.username, sasl.password), and name that in kafka.existingSecret" }}
{{- else -}}
{{ required "kafka.bootstrap: say where Kafka is (host:port,…), or set kafka.bundled.enabled=true for a trial" .Values.kafka.bootstrap }}
{{- end }}
{{- end }}

{{/* A password in any form that libpq takes: password=, user:password@, also in a DSN that stands for the database; and what an
     escaped key, or an escaped name of the database, may hide. */}}
{{- define "fluxqueue.dsnWithPassword" -}}
{{- range list "(?i)password\\s*=" "[a-zA-Z]+://[^@]*:[^@]*@" "[?&][^=&]*%" "://[^/]*/[^?]*%" }}
{{- if regexMatch . $.Values.postgres.dsn }}yes{{ end }}
{{- end }}
{{- end }}

{{- define "fluxqueue.dsn" -}}
{{- if .Values.postgres.bundled.enabled -}}
host=fluxqueue-postgres.{{ .Release.Namespace }}.svc dbname=fluxqueue sslmode=disable
{{- else if include "fluxqueue.dsnWithPassword" . -}}
{{ fail "postgres.dsn: everybody can read it: put the password under the key password into a Secret, and name that in postgres.existingSecret" }}
{{- else if regexMatch "sslmode\\s*=\\s*'?(allow|prefer)" .Values.postgres.dsn -}}
{{ fail "postgres.dsn: this sslmode goes on in plain text where no TLS is offered: write sslmode=verify-full, which is the default, or sslmode=disable if plain text is meant" }}
{{- else if and .Values.postgres.accountPerService (regexMatch "(^|\\s)user\\s*=|^[a-zA-Z]+://[^/]*@|[?&]user=" .Values.postgres.dsn) -}}
{{ fail "postgres.dsn: with postgres.accountPerService it names no user: each service has its own, fluxqueue_queue and so on" }}
{{- else -}}
{{ required "postgres.dsn: say where the database is (host=… dbname=… user=…), or set postgres.bundled.enabled=true for a trial" .Values.postgres.dsn }}
{{- end }}
{{- end }}

{{/* Lines that say what of the connections is not protected. */}}
{{- define "fluxqueue.unprotected" -}}
{{- if not .Values.postgres.bundled.enabled }}
{{- with regexFind "sslmode\\s*=\\s*'?(disable|require|verify-ca)" .Values.postgres.dsn | regexFind "[a-z-]+$" }}
postgres.dsn says sslmode={{ . }}: {{ ternary "passwords and rows go in plain text" "whoever answers is taken for the database" (eq . "disable") }}. The default is verify-full.
{{- end }}
{{- end }}
{{- if contains "plaintext://" .Values.kafka.bootstrap }}
kafka.bootstrap says plaintext://: records go in plain text. The default is TLS.
{{- end }}
{{- end }}

{{/* Lines that say which accounts the services share. */}}
{{- define "fluxqueue.shared" -}}
{{- if not (include "fluxqueue.postgresAccounts" .) }}
All services share one account in Postgres: whoever has one pod's has all. deploy/docs/security.md, "Accounts in Postgres and Kafka", says how each gets its own (postgres.accountPerService).
{{- end }}
{{- if and (not .Values.kafka.bundled.enabled) (not .Values.kafka.accountPerService) }}
All services share one account in Kafka: see there, too (kafka.accountPerService).
{{- end }}
{{- end }}

{{/* "yes" where each service has a role of its own in Postgres. */}}
{{- define "fluxqueue.postgresAccounts" -}}
{{- if or .Values.postgres.bundled.enabled .Values.postgres.accountPerService }}yes{{ end }}
{{- end }}

{{- define "fluxqueue.postgres" -}}
postgres: {dsn: {{ include "fluxqueue.dsn" . | quote }}}
{{- end }}

{{/* Where everything is: the part of the configuration that services and command line share. */}}
{{- define "fluxqueue.system" -}}
{{ include "fluxqueue.postgres" . }}
kafka:
  bootstrap: {{ include "fluxqueue.kafka" . | quote }}
  {{- if .Values.kafka.existingSecret }}
  properties: /etc/fluxqueue/kafka/client.properties
  {{- end }}
{{- end }}

{{/* Ports of Kafka, Postgres and the collector of traces: those that their addresses name, and those that the values add. */}}
{{- define "fluxqueue.storePorts" -}}
{{- $dsn := regexFindAll "port *= *[0-9]+|:[0-9]+([/?,]|$)" (include "fluxqueue.dsn" .) -1 | default (list .Values.postgres.port) -}}
{{- $named := concat (splitList "," (include "fluxqueue.kafka" .)) .Values.kafka.ports $dsn (compact (list .Values.tracing.endpoint)) -}}
{{- range $named }}
{{ regexFind "[0-9]+[^0-9]*$" (toString .) | regexFind "[0-9]+" }}
{{- end }}
{{- end }}

{{/* A service's configuration: (list CONTEXT SERVICE LOGFORMAT [STEP]). What the values say wins. The hook's step says nothing into the
logs, and runs before there are keys. */}}
{{- define "fluxqueue.config" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $own := dict -}}
{{- /* Time in which all nodes hear that a pod which ends is no endpoint of the Service any more. */}}
{{- $drain := "5s" }}
{{- if eq $name "admission" }}
{{- $own = dict "webhook" (dict "drain" $drain "address" $root.Values.listenAddress "port" 9443 "certificate" "/etc/fluxqueue/webhook/tls.crt" "key" "/etc/fluxqueue/webhook/tls.key") }}
{{- if $root.Values.webhook.clientAuthority.configMap }}
{{- $own = mergeOverwrite $own (dict "webhook" (dict "client_authority" "/etc/fluxqueue/webhook-clients/ca.crt" "client_names" $root.Values.webhook.clientAuthority.names)) }}
{{- end }}
{{- else if eq $name "binder" }}
{{- $own = dict "proof_key" "/etc/fluxqueue/proof/proof.key" }}
{{- else if eq $name "queue" }}
{{- $own = dict "grpc" (mergeOverwrite (include "fluxqueue.grpc" $root | fromJson) (dict "advertise" "${POD_IP}:9200")) }}
{{- range $caller := list "graph" "visibility" }}
{{- if (index $root.Values $caller).enabled }}
{{- $own = mergeOverwrite $own (dict "grpc" (dict "callers" (dict $caller (include "fluxqueue.grpcName" (list $root $caller))))) }}
{{- end }}
{{- end }}
{{- else if eq $name "visibility" }}
{{- $queue := include "fluxqueue.grpcName" (list $root "queue") }}
{{- $files := dict "certificate" "/etc/fluxqueue/grpc/tls.crt" "key" "/etc/fluxqueue/grpc/tls.key" }}
{{- $own = dict "api" (mergeOverwrite (deepCopy $files) (dict "drain" $drain "address" $root.Values.listenAddress "port" 9444)) "queue" (mergeOverwrite $files (dict "address" (printf "%s:9200" $queue) "authority" "/etc/fluxqueue/grpc/ca.crt" "name" $queue)) }}
{{- else if eq $name "graph" }}
{{- $grpc := include "fluxqueue.grpc" $root | fromJson }}
{{- /* The command line does not call it. */}}
{{- $_ := set $grpc.callers "clients" $root.Values.grpc.clients }}
{{- $own = dict "grpc" $grpc }}
{{- end }}
{{- $own = mergeOverwrite $own (deepCopy (index $root.Values $name).config) -}}
log: {level: {{ $root.Values.log.level }}, format: {{ index . 2 }}}
http: {address: {{ $root.Values.listenAddress | quote }}, port: 8080}
{{- if eq $name "graph" }}
{{ include "fluxqueue.postgres" $root }}
{{- else if ne $name "visibility" }}
{{ include "fluxqueue.system" $root }}
  session_timeout: {{ $root.Values.kafka.sessionTimeout }}
  max_clock_lead: {{ $root.Values.kafka.maxClockLead }}
{{- with ternary "" $root.Values.kafka.signing (gt (len .) 3) }}
signing: {key: /etc/fluxqueue/signing/key.pem{{ if eq . "check" }}, keys: /etc/fluxqueue/signing-keys{{ end }}}
{{- end }}
{{- end }}
{{- with $root.Values.tracing.endpoint }}
{{- if regexMatch "[@?#]" . }}
{{- fail "tracing.endpoint: everybody can read it: it is http://HOST:PORT; where the collector wants a password or a token, send to an agent of your own that adds it" }}
{{- end }}
tracing: {endpoint: {{ . | quote }}}
{{- end }}
{{- with $own }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Volumes and mounts by which a pod reaches Kafka and Postgres, beside its own. (list CONTEXT SERVICES [STEP]): those whose
containers it has, or "cli". The graph service has nothing to do with Kafka. */}}
{{- define "fluxqueue.volumes" -}}
{{- $values := (index . 0).Values -}}
- name: tmp
  emptyDir: {}
{{- $readers := without (index . 1) "graph" }}
{{- if $values.kafka.accountPerService }}
{{- range $readers }}
- name: kafka-{{ . }}
  secret: {secretName: {{ required "kafka.existingSecret: with kafka.accountPerService it is what the names of the services' Secrets begin with" $values.kafka.existingSecret }}-{{ . }}, defaultMode: 0440}
{{- end }}
{{- else if and $readers $values.kafka.existingSecret }}
- name: kafka
  secret: {secretName: {{ $values.kafka.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- if and $values.kafka.signing (lt (len .) 3) }}
{{- range $readers }}
- name: signing-{{ . }}
  secret: {secretName: fluxqueue-signing-{{ . }}, defaultMode: 0440}
{{- end }}
{{- with $readers }}
- name: signing-keys
  configMap: {name: fluxqueue-signing-keys}
{{- end }}
{{- end }}
{{- with $values.postgres.tlsSecret }}
- name: postgres
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* (list CONTEXT SERVICE [STEP]) */}}
{{- define "fluxqueue.mounts" -}}
{{- $values := (index . 0).Values -}}
- {name: tmp, mountPath: /tmp}
{{- if and (ne (index . 1) "graph") $values.kafka.existingSecret }}
- {name: kafka{{ if $values.kafka.accountPerService }}-{{ index . 1 }}{{ end }}, mountPath: /etc/fluxqueue/kafka, readOnly: true}
{{- end }}
{{- if and (ne (index . 1) "graph") $values.kafka.signing (lt (len .) 3) }}
- {name: signing-{{ index . 1 }}, mountPath: /etc/fluxqueue/signing, readOnly: true}
- {name: signing-keys, mountPath: /etc/fluxqueue/signing-keys, readOnly: true}
{{- end }}
{{- if $values.postgres.tlsSecret }}
- {name: postgres, mountPath: /etc/fluxqueue/postgres, readOnly: true}
{{- end }}
{{- end }}

{{/* (list CONTEXT SERVICE SECRET): the Secret that has the bundled database's passwords. */}}
{{- define "fluxqueue.env" -}}
{{- $root := index . 0 -}}
{{- $key := "password" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- if include "fluxqueue.postgresAccounts" $root }}
{{- $key = index . 1 }}
- {name: PGUSER, value: fluxqueue_{{ $key }}}
{{- end }}
{{- with (ternary (index . 2) $root.Values.postgres.existingSecret $root.Values.postgres.bundled.enabled) }}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $key }}}}
{{- end }}
{{- end }}

{{/* What runs psql against the bundled database, as its owner: (list SECRET). */}}
{{- define "fluxqueue.rolesEnv" -}}
{{- range $variable, $key := dict "POSTGRES_PASSWORD" "password" "ADMISSION" "admission" "QUEUE" "queue" "MATCHER" "matcher" "BINDER" "binder" "CLEANUP" "cleanup" "GRAPH" "graph" "CLI" "cli" }}
- name: {{ $variable }}
  valueFrom: {secretKeyRef: {name: {{ index $ 0 }}, key: {{ $key }}}}
{{- end }}
{{- end }}

{{/* What every pod of ours has. */}}
{{- define "fluxqueue.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
enableServiceLinks: false
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The argument is the user: that of our images is 65532. */}}
{{- define "fluxqueue.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "fluxqueue.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* (list CONTEXT OPERATIONS WHAT...): a rule for each API group of files/kinds.yaml, of the kinds that are one of WHAT. */}}
{{- define "fluxqueue.kindRules" -}}
{{- $groups := dict -}}
{{- $what := slice . 2 -}}
{{- range (index . 0).Files.Get "files/kinds.yaml" | fromYamlArray -}}
{{- if has .is $what -}}
{{- $_ := set $groups .group (append (get $groups .group | default list) .resource) -}}
{{- end -}}
{{- end -}}
{{- $operations := index . 1 -}}
{{- range $group, $resources := $groups }}
- operations: [{{ $operations }}]
  apiGroups: [{{ $group | default "\"\"" }}]
  apiVersions: [v1]
  resources: [{{ join ", " $resources }}]
  scope: Namespaced
{{- end }}
{{- end }}

{{/* (list CONTEXT SERVICE): the rules of its ClusterRole about the kinds of files/kinds.yaml. */}}
{{- define "fluxqueue.kindRights" -}}
{{- $service := index . 1 -}}
{{- range (index . 0).Files.Get "files/kinds.yaml" | fromYamlArray -}}
{{- $kind := . -}}
{{- with get (.rights | default dict) $service }}
- apiGroups: [{{ $kind.group | default "\"\"" }}]
  resources: [{{ $kind.resource }}]
  verbs: [{{ join ", " . }}]
{{- end -}}
{{- end -}}
{{- end }}

{{/* The rules of admission's ClusterRole about what says of how many pods a group is (files/groups.yaml, and more rows). Of owners
files/kinds.yaml has them. */}}
{{- define "fluxqueue.groupRights" -}}
{{- $more := dig "config" "groups" "" .Values.admission | fromYamlArray | default list -}}
{{- range concat (.Files.Get "files/groups.yaml" | fromYamlArray) $more -}}
{{- if and .object (not .owner) }}
- apiGroups: [{{ .object.group }}]
  resources: [{{ .object.resource }}]
  verbs: [get]
{{- end -}}
{{- end -}}
{{- end }}

{{/* The argument is how many containers are looked at. Variables of a policy: whether an object asks for more than before, by its
variables podSpecs and jobSpecs, each of before and of now, and who may have it do so. Fewer pods are no more; of what a pod asks
for any change is. */}}
{{- define "fluxqueue.larger" -}}
- name: demands
  expression: >-
    variables.podSpecs.map(s, [s.?resources, s.?overhead, s.?runtimeClassName, s.?resourceClaims, s.?priorityClassName,
    s.?priority, s.?activeDeadlineSeconds])
- name: demandsOfContainers
  expression: >-
    variables.podSpecs.map(s, [s.containers.map(c, [c.?resources]),
    s.?initContainers.orValue([]).map(c, [c.?resources, c.?restartPolicy])])
- name: samePods
  expression: >-
    variables.demands.all(d, d == variables.demands[0]) &&
    (variables.podSpecs.all(s, s.containers == variables.podSpecs[0].containers &&
    s.?initContainers == variables.podSpecs[0].?initContainers) ||
    variables.podSpecs.all(s, s.containers.size() <= {{ . }} && s.?initContainers.orValue([]).size() <= {{ . }}) &&
    variables.demandsOfContainers.all(d, d == variables.demandsOfContainers[0]))
- name: moreJobs
  expression: >-
    variables.jobSpecs.exists(j, j.?activeDeadlineSeconds != variables.jobSpecs[0].?activeDeadlineSeconds ||
    j.?completions.hasValue() != variables.jobSpecs[0].?completions.hasValue() ||
    j.?completions.orValue(1) > variables.jobSpecs[0].?completions.orValue(1) ||
    j.?parallelism.orValue(1) > variables.jobSpecs[0].?parallelism.orValue(1)) ||
    object.spec.?schedule != oldObject.spec.?schedule || request.resource.resource == 'cronjobs' &&
    oldObject.spec.?suspend.orValue(false) && !object.spec.?suspend.orValue(false) ||
    object.spec.?concurrencyPolicy != oldObject.spec.?concurrencyPolicy
# While pods are replaced there may be more of them.
- name: larger
  expression: >-
    oldObject != null && (!variables.samePods || variables.moreJobs ||
    object.spec.?strategy != oldObject.spec.?strategy || object.spec.?updateStrategy != oldObject.spec.?updateStrategy)
- name: scaledUp
  expression: >-
    oldObject != null && object.spec.?replicas.orValue(1) > oldObject.spec.?replicas.orValue(1)
- name: may
  expression: "authorizer.group('fluxqueue.io').resource('fluxqueues').check('bypass').allowed()"
- name: mayScale
  expression: "variables.may || authorizer.group('fluxqueue.io').resource('fluxqueues').check('scale').allowed()"
{{- end }}

{{/* Variables of a policy: whether a pod that is resized in place asks for more. */}}
{{- define "fluxqueue.grows" -}}
- name: containers
  expression: >-
    request.resource.resource != 'pods' ? [] :
    object.spec.containers + object.spec.?initContainers.orValue([])
- name: oldContainers
  expression: >-
    request.resource.resource != 'pods' || oldObject == null ? [] :
    oldObject.spec.containers + oldObject.spec.?initContainers.orValue([])
- name: grows
  expression: >-
    has(request.subResource) && request.subResource == 'resize' && variables.containers.exists(c,
    c.?resources.?requests.orValue({}).exists(k, !variables.oldContainers.exists(o, o.name == c.name &&
    k in o.?resources.?requests.orValue({}) &&
    quantity(c.resources.requests[k]).compareTo(quantity(o.resources.requests[k])) <= 0)))
{{- end }}

{{/* Whether an update, of a policy that has the variables annotations and oldAnnotations, changes the annotation
fluxqueue.io/retry alone. */}}
{{- define "fluxqueue.retries" -}}
object.spec == oldObject.spec && object.metadata.?labels == oldObject.metadata.?labels &&
object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences &&
object.metadata.?finalizers == oldObject.metadata.?finalizers &&
variables.annotations.all(k, k == 'fluxqueue.io/retry' ||
variables.oldAnnotations[?k] == optional.of(variables.annotations[k])) &&
variables.oldAnnotations.all(k, k == 'fluxqueue.io/retry' || k in variables.annotations)
{{- end }}

{{/* When what is in a Secret of the chart's was made, in seconds. A Secret of before there was such an annotation has what it
was made with. */}}
{{- define "fluxqueue.madeAt" -}}
{{- $annotations := .metadata.annotations | default dict }}
{{- get $annotations "fluxqueue.io/made" | default (toDate "2006-01-02T15:04:05Z07:00" .metadata.creationTimestamp | unixEpoch) }}
{{- end }}

{{/* "true" where certificates that were made then hold for a year or less: they are made for ten. */}}
{{- define "fluxqueue.endsSoon" -}}
{{- if gt (sub (now | unixEpoch | int64) (. | int64)) (mul 9 365 24 60 60) }}true{{ end }}
{{- end }}

{{/* (list AUTHORITY BEFORE): ca.crt, in base64, of what a new authority signs. The one before, in base64 if there was one, is
believed beside it: who shows what it has signed has not read the new files yet. */}}
{{- define "fluxqueue.authorities" -}}
{{- printf "%s%s" (index . 0).Cert (index . 1 | b64dec | regexFind "(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n") | b64enc }}
{{- end }}
