#!/usr/bin/env bash
# Installs what the tests need beside Python packages: an OpenSSH server and a browser. Says loudly what it could not.
set -u
missing=()
command -v openssl >/dev/null 2>&1 || missing+=(openssl)
command -v ssh-keygen >/dev/null 2>&1 || missing+=(openssh-client)
[ -x /usr/sbin/sshd ] || command -v sshd >/dev/null 2>&1 || missing+=(openssh-server)
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing+=(chromium)
[ ${#missing[@]} -eq 0 ] && exit 0

if command -v apt-get >/dev/null 2>&1; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(false); fi
  fi
  log=$(mktemp)
  if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 &&
     "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}" fonts-dejavu-core >>"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  tail -n 5 "$log" >&2
  rm -f "$log"
fi
cat >&2 <<EOF

=====================================================================
 COULD NOT INSTALL: ${missing[*]}
 The tests that need them will FAIL, not be skipped.
 Install them with your system's package manager and run again.
=====================================================================

EOF
exit 0
