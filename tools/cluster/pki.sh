# shellcheck shell=bash
# Certificates and kubeconfigs of a cluster, for tools/cluster/start. Sourced after log.sh.
#
# DIR/pki has the cluster's own authority, the API server's certificate, one client certificate for each part, the key that
# signs service account tokens, and in front-proxy/ what the API server calls extension API servers with. All are made once,
# at the first start in DIR, and hold ten years.

# pki_make DIR: everything in DIR/pki.
pki_make() {
  pki_folder "$1" pki pki_cluster
  pki_folder "$1" pki/front-proxy pki_front_proxy
}

# pki_folder DIR FOLDER FUNCTION: DIR/FOLDER, which FUNCTION fills, unless it is there.
pki_folder() {
  local folder=$1/$2 log=$1/logs/pki.log
  [[ ! -e $folder/done ]] || return 0
  rm -rf "$folder"
  (umask 077 && mkdir "$folder")
  "$3" "$folder" >"$log" 2>&1 || {
    say "making the certificates failed; the end of $log:"
    show_tail "$log"
    return 1
  }
  : >"$folder/done"
}

# An authority of its own: whoever has a certificate of it is believed when it says who asks.
pki_front_proxy() {
  pki_authority "$1" fluxqueue-test-front-proxy-ca
  pki_sign "$1" client /CN=front-proxy-client clientAuth
}

pki_cluster() {
  local pki=$1
  pki_authority "$pki" fluxqueue-test-ca
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/service-account.key"
  openssl ec -in "$pki/service-account.key" -pubout -out "$pki/service-account.pub"
  pki_sign "$pki" kube-apiserver /CN=kube-apiserver serverAuth "$(printf '%s' \
    "subjectAltName=IP:127.0.0.1,IP:$SERVICE_IP,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default," \
    "DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local")"
  pki_sign "$pki" admin /O=system:masters/CN=admin clientAuth
  pki_sign "$pki" kwok /O=system:masters/CN=kwok clientAuth
  pki_sign "$pki" kube-controller-manager /CN=system:kube-controller-manager clientAuth
  pki_sign "$pki" kube-scheduler /CN=system:kube-scheduler clientAuth
}

# pki_authority PKI NAME: ca.key and ca.crt, which pki_sign signs with.
pki_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$2" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$1/ca.key" -out "$1/ca.crt"
}

# pki_sign PKI NAME SUBJECT USAGE [EXTENSION]
pki_sign() {
  openssl req -x509 -CA "$1/ca.crt" -CAkey "$1/ca.key" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj "$3" -addext basicConstraints=CA:FALSE -addext "extendedKeyUsage=$4" ${5:+-addext "$5"} \
    -keyout "$1/$2.key" -out "$1/$2.crt"
}

# pki_kubeconfig DIR NAME PORT FILE: a kubeconfig that holds its certificates, so that it can be copied anywhere.
pki_kubeconfig() {
  (umask 077 && cat >"$4.new") <<END
apiVersion: v1
kind: Config
clusters:
  - name: fluxqueue
    cluster:
      server: https://127.0.0.1:$3
      certificate-authority-data: $(base64 -w0 <"$1/pki/ca.crt")
users:
  - name: $2
    user:
      client-certificate-data: $(base64 -w0 <"$1/pki/$2.crt")
      client-key-data: $(base64 -w0 <"$1/pki/$2.key")
contexts:
  - name: fluxqueue
    context: {cluster: fluxqueue, user: $2}
current-context: fluxqueue
END
  mv "$4.new" "$4"
}
