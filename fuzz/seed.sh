#!/bin/sh
# Makes the corpus of the target "parsers" from the recorded outputs: one file each, behind the byte that cuts it into standard
# output and standard error (0: all of it is standard error; 255: standard output).
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/parsers
for file in ../tests/golden/outputs/*; do
    name=$(basename "$file")
    case $name in
        README.md) continue ;;
        *.stderr) cut='\000' ;;
        *) cut='\377' ;;
    esac
    { printf "$cut"; cat "$file"; } >"corpus/parsers/$name"
done
ls corpus/parsers | wc -l
