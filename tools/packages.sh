# The Debian 12 packages kvlift needs, in this one place. Sourced by tools/quickstart and tools/check.
# Boost, which SimGrid's headers include, comes with libsimgrid-dev; fmt comes with libspdlog-dev; the sanitizers
# come with g++.

packages_build=(g++ cmake ninja-build pkg-config ccache
                libsimgrid-dev nlohmann-json3-dev libcli11-dev libspdlog-dev zlib1g-dev liburing-dev libisal-dev)
packages_check=("${packages_build[@]}" libgtest-dev libgmock-dev libbenchmark-dev
                clang-format clang-tidy python3)

# Installs those of the named packages that are not there. Needs root or sudo only when something is missing.
install_missing() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  echo "Installing Debian packages: ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "Neither root nor sudo here. Run as root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
