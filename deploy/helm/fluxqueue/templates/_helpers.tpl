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

{{/* (list CONTEXT SERVICE) */}}
{{- define "fluxqueue.image" -}}
{{- $image := (index . 0).Values.image -}}
{{ $image.registry }}{{ $image.repository }}/{{ index . 1 }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
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

{{/* A password in any form that libpq takes: password=, user:password@, and what an escaped key may hide. */}}
{{- define "fluxqueue.dsnWithPassword" -}}
{{- range list "(?i)password\\s*=" "^[a-zA-Z]+://[^@]*:[^@]*@" "[?&][^=&]*%" }}
{{- if regexMatch . $.Values.postgres.dsn }}yes{{ end }}
{{- end }}
{{- end }}

{{- define "fluxqueue.dsn" -}}
{{- if .Values.postgres.bundled.enabled -}}
host=fluxqueue-postgres.{{ .Release.Namespace }}.svc dbname=fluxqueue user=fluxqueue sslmode=disable
{{- else if include "fluxqueue.dsnWithPassword" . -}}
{{ fail "postgres.dsn: everybody can read it: put the password under the key password into a Secret, and name that in postgres.existingSecret" }}
{{- else if regexMatch "sslmode\\s*=\\s*'?(allow|prefer)" .Values.postgres.dsn -}}
{{ fail "postgres.dsn: this sslmode goes on in plain text where no TLS is offered: write sslmode=verify-full, which is the default, or sslmode=disable if plain text is meant" }}
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

{{/* Where everything is: the part of the configuration that services and command line share. */}}
{{- define "fluxqueue.system" -}}
postgres: {dsn: {{ include "fluxqueue.dsn" . | quote }}}
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

{{/* A service's configuration: (list CONTEXT SERVICE LOGFORMAT). What the values say wins. */}}
{{- define "fluxqueue.config" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $own := dict -}}
{{- if eq $name "admission" }}
{{- $own = dict "webhook" (dict "address" $root.Values.listenAddress "port" 9443 "certificate" "/etc/fluxqueue/webhook/tls.crt" "key" "/etc/fluxqueue/webhook/tls.key") }}
{{- if $root.Values.webhook.clientAuthority.configMap }}
{{- $own = mergeOverwrite $own (dict "webhook" (dict "client_authority" "/etc/fluxqueue/webhook-clients/ca.crt" "client_names" $root.Values.webhook.clientAuthority.names)) }}
{{- end }}
{{- else if eq $name "queue" }}
{{- $own = dict "grpc" (mergeOverwrite (include "fluxqueue.grpc" $root | fromJson) (dict "advertise" "${POD_IP}:9200")) }}
{{- else if eq $name "matcher" }}
{{- $own = dict "grpc" (include "fluxqueue.grpc" $root | fromJson) "advertise" "${POD_IP}:9200" }}
{{- end }}
{{- $own = mergeOverwrite $own (deepCopy (index $root.Values $name).config) -}}
log: {level: {{ $root.Values.log.level }}, format: {{ index . 2 }}}
http: {address: {{ $root.Values.listenAddress | quote }}, port: 8080}
{{ include "fluxqueue.system" $root }}
  session_timeout: {{ $root.Values.kafka.sessionTimeout }}
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

{{/* Volumes and mounts by which a pod reaches Kafka and Postgres, beside its own. */}}
{{- define "fluxqueue.volumes" -}}
- name: tmp
  emptyDir: {}
{{- with .Values.kafka.existingSecret }}
- name: kafka
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.postgres.tlsSecret }}
- name: postgres
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "fluxqueue.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.kafka.existingSecret }}
- {name: kafka, mountPath: /etc/fluxqueue/kafka, readOnly: true}
{{- end }}
{{- if .Values.postgres.tlsSecret }}
- {name: postgres, mountPath: /etc/fluxqueue/postgres, readOnly: true}
{{- end }}
{{- end }}

{{- define "fluxqueue.env" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- with (ternary "fluxqueue-postgres" .Values.postgres.existingSecret .Values.postgres.bundled.enabled) }}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ . }}, key: password}}
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
