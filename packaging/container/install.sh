#!/bin/sh
# Install the broker: install.sh FOLDER-OF-THE-WHEEL [ROOT]
#
# Below ROOT, which is / in a container, it makes an environment with the wheel and with what the wheel asks for in
# /opt/exacta, and the data directory /var/lib/exacta. As root it gives the data directory to the container's user.
set -eu

wheels=$1
root=${2:-}
user=10001

python3 -m venv "$root/opt/exacta"
for wheel in "$wheels"/exacta_log-*.whl; do
    "$root/opt/exacta/bin/python" -m pip install --no-cache-dir --quiet "exacta-log[pulsar,tls,oauth] @ file://$(realpath "$wheel")"
done
"$root/opt/exacta/bin/exacta" --version

mkdir -p "$root/var/lib/exacta"
chmod 0700 "$root/var/lib/exacta"
if [ -z "$root" ]; then
    chown "$user" "$root/var/lib/exacta"
fi
