{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The Host headers that the server answers to: this machine, the Service's names, the Ingress, others. */ -}}
{{- define "hosts" -}}
{{- $service := printf "%s.%s" .Release.Name .Release.Namespace -}}
{{- $names := list "localhost" "127.0.0.1" .Release.Name $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) -}}
{{- with .Values.ingress.host }}{{ $names = append $names . }}{{ end -}}
{{- $hosts := list -}}
{{- range $names }}{{ $hosts = concat $hosts (list . (printf "%s:*" .)) }}{{ end -}}
{{- join "," (concat $hosts .Values.allowedHosts) -}}
{{- end }}
