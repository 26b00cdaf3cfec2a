# shellcheck shell=bash disable=SC2034 # stages use what is assigned here
# Sourced by the stages: results, roots of Debian releases, packages of the tree.
# What takes minutes to make is kept in $cache, and made anew when what it is made of has changed.
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${PACKAGE_CACHE:-$top/build/package}
stage=${0##*/}
mkdir -p "$cache"
work=$(mktemp -d "$cache/$stage.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
log=$work/log
status=0

pass() { echo "PASS package.$1"; }
fail() { echo "FAIL package.$1: $2"; status=1; }
# The stage cannot be done here.
skip() { echo "SKIP package.$stage: $1"; exit 0; }
# NAME WHY: it failed, the log says more, and nothing further makes sense.
die() { tail -n 40 "$log"; fail "$1" "$2"; exit 1; }
# NAME WHY COMMAND...: a result by the command's status.
expect() {
	local name=$1 why=$2
	shift 2
	if "$@" >"$work/expect" 2>&1; then pass "$name"; else tail -n 20 "$work/expect"; fail "$name" "$why"; fi
}

# PATTERN FILE: it has no such line; those that it has are shown.
no_match() { ! grep -E -- "$1" "$2"; }

need_root() { [ "$(id -u)" -eq 0 ] || skip "root directories of their own need root"; }
need_tools() {
	command -v mmdebstrap >/dev/null && command -v systemd-nspawn >/dev/null && command -v dpkg-deb >/dev/null && command -v dh >/dev/null ||
		"$top/scripts/install-deps" package >"$log" 2>&1 || skip "its packages cannot be installed"
}

# The mirror that this machine uses.
mirror() {
	local release
	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v r="$release" '$1 == r && $2 == "main" { print $3; exit }'
}

# RELEASE KIND OPTION...: print the tar of a root, which mmdebstrap makes with these options.
tar_of_root() {
	local tar=$cache/$1-$2.tar release=$1
	shift 2
	if [ ! -e "$tar" ]; then
		mmdebstrap --quiet "$@" "$release" "$work/made.tar" "$(mirror)" >"$log" 2>&1 && mv "$work/made.tar" "$tar" || return
	fi
	echo "$tar"
}

# RELEASE: set $root to a directory that builds packages, made once; it fails where it cannot be made.
build_root() {
	local needs
	needs=$(sed -n '/^Build-Depends:/,/^[^ ]/p' "$top/debian/control" | md5sum | cut -c 1-8)
	root=$cache/$1-build-$needs
	[ -e "$root" ] && return
	rm -rf --one-file-system "$cache/$1-build-"*
	mmdebstrap --quiet --variant=buildd --include=lintian --aptopt='APT::Install-Recommends "false"' \
		--customize-hook='mkdir -p "$1/build/needs/debian"' --customize-hook="cp '$top/debian/control' \"\$1/build/needs/debian\"" \
		--customize-hook='chroot "$1" apt-get -y -q build-dep /build/needs' --customize-hook='rm -r "$1/build"' \
		"$1" "$root.tmp" "$(mirror)" >"$log" 2>&1 && cp -L /etc/resolv.conf "$root.tmp/etc/resolv.conf" && mv "$root.tmp" "$root"
}

# RELEASE ARCHITECTURE: the same for packages of another machine, built on this one.
cross_root() {
	local needs
	needs=$(sed -n '/^Build-Depends:/,/^[^ ]/p' "$top/debian/control" | md5sum | cut -c 1-8)
	root=$cache/$1-$2-build-$needs
	[ -e "$root" ] && return
	rm -rf --one-file-system "$cache/$1-$2-build-"*
	# The second line is for the one program that runs while it builds (debian/rules).
	mmdebstrap --quiet --variant=buildd --architectures="$(dpkg --print-architecture),$2" --include="lintian,crossbuild-essential-$2" \
		--aptopt='APT::Install-Recommends "false"' \
		--customize-hook='mkdir -p "$1/build/needs/debian"' --customize-hook="cp '$top/debian/control' \"\$1/build/needs/debian\"" \
		--customize-hook='chroot "$1" apt-get -y -q -P nocheck build-dep /build/needs' \
		--customize-hook="chroot \"\$1\" apt-get -y -q -a $2 -P cross,nocheck build-dep /build/needs" \
		--customize-hook='rm -r "$1/build"' \
		"$1" "$root.tmp" "$(mirror)" >"$log" 2>&1 && cp -L /etc/resolv.conf "$root.tmp/etc/resolv.conf" && mv "$root.tmp" "$root"
}

# RELEASE: print the tar of the smallest root that Debian makes.
bare_root() { tar_of_root "$1" bare --variant=minbase; }

# TAR: unpack it into $root.
unpack_root() {
	root=$work/root
	mkdir "$root"
	tar -xpf "$1" -C "$root" --numeric-owner --exclude=./dev/* && cp -L /etc/resolv.conf "$root/etc/resolv.conf" || die root "cannot be unpacked"
}

# COMMAND: run a bash command in $root, which has this machine's devices and network, and processes of its own.
in_root() {
	unshare --mount --pid --fork --kill-child bash -eu -c '
		mount --make-rprivate /
		for file in dev sys; do mount --rbind /$file "$1/$file"; done
		mount -t proc proc "$1/proc"
		mount -t tmpfs tmp "$1/tmp"
		exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euc "$2"
	' in_root "$root" "$1"
}

# The files of the tree as they are, committed or not, into DIR.
copy_sources() {
	mkdir -p "$1"
	(cd "$top" && git ls-files -co --exclude-standard -z | tar -c --null --ignore-failed-read -T - 2>/dev/null) | tar -x -C "$1" --no-same-owner
}

# The sum of all these files: what packages are made of.
sources_sum() {
	(cd "$top" && git ls-files -co --exclude-standard -z | LC_ALL=C sort -z | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c 1-16)
}

# RELEASE: set $debs to the directory of this tree's packages, built without tests if it is not there.
# Its file "log" is what the build said.  With PACKAGE_ON_HOST they are built on this machine, if it has that release.
packages() {
	debs=$cache/debs-$1
	[ "$(cat "$debs/sum" 2>/dev/null)" != "$(sources_sum)" ] || return 0
	if [ -n "${PACKAGE_ON_HOST:-}" ] && grep -qx "VERSION_CODENAME=$1" /etc/os-release; then
		rm -rf "$debs"
		build_on_host "$debs" || die "${stage#*-}.build" "dpkg-buildpackage failed"
		sources_sum >"$debs/sum"
		return
	fi
	build_root "$1" || skip "there is no root of $1 to build in: $(tail -n 1 "$log")"
	rm -rf "$debs"
	build_packages /build/gpu-agent "$debs" "DEB_BUILD_OPTIONS='nocheck parallel=$(nproc)'" || die "${stage#*-}.build" "dpkg-buildpackage failed"
	sources_sum >"$debs/sum"
}

# OUTPUT: the same without a root of its own; what the build needs is there under any name.
build_on_host() {
	copy_sources "$work/gpu-agent"
	mkdir -p "$1"
	(cd "$work/gpu-agent" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -d -us -uc) >"$1/log" 2>&1 ||
		{ cp "$1/log" "$log"; return 1; }
	find "$work" -maxdepth 1 -name '*_*' -type f -exec mv -t "$1" {} +
	rm -rf "$work/gpu-agent"
}

# PATH OUTPUT ENVIRONMENT [PREFIX] [OPTIONS]: dpkg-buildpackage of this tree at PATH in $root, with what it makes in
# OUTPUT.  PREFIX is a command that runs another one, as another user for example.
build_packages() {
	rm -rf "$root/build"
	copy_sources "$root$1"
	mkdir -p "$2"
	chown -R 1000:1000 "$root/build"
	if ! in_root "cd $1 && $3 ${4:-} nice dpkg-buildpackage -us -uc ${5:-}" >"$2/log" 2>&1; then
		cp "$2/log" "$log"
		return 1
	fi
	find "$root$1/.." -maxdepth 1 -type f -exec mv -t "$2" {} +
	rm -rf "$root/build"
}
