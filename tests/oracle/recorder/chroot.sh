#!/bin/bash
# chroot.sh ROOT [MODELS.json]: lays out, on a Debian host and as root, the system that the recorder runs in: Debian sid with its torch, and beside
# the recorder the releases of packages that records were made with, unpacked and never installed. Ten minutes; what is there already is kept.
# MIRROR=URL: where debootstrap takes sid from.
set -euo pipefail
root=$1 models=${2:-} here=$(cd "$(dirname "$0")" && pwd)
[ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase sid "$root" ${MIRROR:+"$MIRROR"}
chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-torch libtorch-dev g++ python3-transformers \
  python3-accelerate python3-torchvision python3-pydantic python3-einops python3-hjson python3-msgpack python3-cpuinfo python3-yaml
there=$root/o2
mkdir -p "$there"
cp "$here"/*.py "$here"/*.cpp "$here"/*.sh "$there/"
[ -z "$models" ] || cp "$models" "$there/models.json"
chroot "$root" bash /o2/build.sh /o2

# unpack FOLDER PACKAGE==RELEASE…: side by side in third_party/FOLDER
unpack() {
  local folder=$there/third_party/$1 wanted
  shift
  mkdir -p "$folder"
  for wanted in "$@"; do
    [ -e "$folder/.$wanted" ] && continue
    python3 "$here/fetch_package.py" "$wanted" "$folder" && touch "$folder/.$wanted"
  done
}
unpack src peft==0.18.0 diffusers==0.42.1
unpack src/trl-1.9.0 trl==1.9.0
unpack pkgs deepspeed==0.19.8
unpack optimizers galore-torch==1.0 apollo-torch==1.0.3 grokadamw==0.1.2 came-pytorch==0.1.3 schedulefree==1.4.1 lomo-optim==0.1.1 adam-mini==1.1.1 \
  bitsandbytes==0.50.2 torchao==0.18.0 badam==1.4 q-galore-torch==1.0 axolotl-contribs-mit==0.0.6 prodigyopt==1.1.2
unpack quantised gptqmodel==7.7.0 auto-gptq==0.7.1 autoawq==0.2.9 hqq==0.2.8.post1 optimum-quanto==0.2.7 torchao==0.17.0 aqlm==1.1.7
unpack own timm==1.0.20
unpack megatron megatron-core==0.16.1
unpack titan torchtitan==0.2.2
unpack unsloth unsloth==2026.8.19 unsloth_zoo==2026.8.13
for release in 1.13.0 1.14.0 1.15.0; do unpack accelerate-$release accelerate==$release; done
