#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pack a compiled extension as VS Code installs it: a zip file with two descriptions of itself.

usage: pack.py EXTENSION_DIRECTORY FILE.vsix     the same files give the same bytes
"""
import json
import pathlib
import sys
import zipfile
from xml.sax.saxutils import escape, quoteattr

TYPES = {"json": "application/json", "js": "application/javascript", "md": "text/markdown", "vsixmanifest": "text/xml",
         "ts": "text/plain", "txt": "text/plain", "": "text/plain"}
MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
    <DisplayName>{display}</DisplayName>
    <Description>{description}</Description>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/></Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def manifest(package):
    return MANIFEST.format(name=quoteattr(package["name"]), version=quoteattr(package["version"]),
                           publisher=quoteattr(package["publisher"]), display=escape(package["displayName"]),
                           description=escape(package["description"]), engine=quoteattr(package["engines"]["vscode"]))


def content_types(files):
    endings = sorted({f.suffix.lstrip(".") for f in files} | {"vsixmanifest"})
    rows = "".join(f'<Default Extension=".{e}" ContentType="{TYPES.get(e, "application/octet-stream")}"/>'
                   for e in endings if e)
    return ('<?xml version="1.0" encoding="utf-8"?>\n'
            f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{rows}</Types>\n')


def main(argv):
    if len(argv) != 3:
        sys.stderr.write("usage: pack.py EXTENSION_DIRECTORY FILE.vsix\n")
        return 2
    directory = pathlib.Path(argv[1])
    files = sorted(f for f in directory.rglob("*") if f.is_file())
    texts = {"extension.vsixmanifest": manifest(json.loads((directory / "package.json").read_text())),
             "[Content_Types].xml": content_types(files)}
    contents = [*texts.items(), *((f"extension/{f.relative_to(directory)}", f.read_bytes()) for f in files)]
    with zipfile.ZipFile(argv[2], "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
