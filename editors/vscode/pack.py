#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pack a compiled extension as VS Code installs it and a marketplace takes it: a zip file with two descriptions of itself.

usage: pack.py EXTENSION_DIRECTORY FILE.vsix     the same files give the same bytes
"""
import json
import pathlib
import sys
import zipfile
from xml.etree import ElementTree as xml

TYPES = {"json": "application/json", "js": "application/javascript", "md": "text/markdown", "vsixmanifest": "text/xml",
         "txt": "text/plain", "png": "image/png", "svg": "image/svg+xml"}
SCHEMA = "http://schemas.microsoft.com/developer/vsx-schema/2011"
#: What a marketplace shows, by the file in the extension's directory.
ASSETS = {"package.json": "Microsoft.VisualStudio.Code.Manifest",
          "README.md": "Microsoft.VisualStudio.Services.Content.Details",
          "CHANGELOG.md": "Microsoft.VisualStudio.Services.Content.Changelog",
          "LICENSE.txt": "Microsoft.VisualStudio.Services.Content.License",
          "icon.png": "Microsoft.VisualStudio.Services.Icons.Default"}


def properties(package):
    """What VS Code and the marketplace read without unpacking package.json; the names are those that vsce writes."""
    code, services = "Microsoft.VisualStudio.Code.", "Microsoft.VisualStudio.Services."
    return {
        code + "Engine": package["engines"]["vscode"], code + "ExtensionDependencies": "", code + "ExtensionPack": "",
        code + "ExtensionKind": ",".join(package["extensionKind"]), code + "LocalizedLanguages": "",
        code + "EnabledApiProposals": "", code + "ExecutesCode": "true",
        services + "Branding.Color": package["galleryBanner"]["color"],
        services + "Branding.Theme": package["galleryBanner"]["theme"],
        services + "GitHubFlavoredMarkdown": "true", services + "Content.Pricing": package["pricing"],
        services + "EnableMarketplaceQnA": str(package["qna"]).lower(),
    }


def text_element(parent, name, text):
    xml.SubElement(parent, name).text = text


def manifest(package):
    root = xml.Element("PackageManifest", Version="2.0.0", xmlns=SCHEMA)
    data = xml.SubElement(root, "Metadata")
    xml.SubElement(data, "Identity", Language="en-US", Id=package["name"], Version=package["version"],
                   Publisher=package["publisher"])
    text_element(data, "DisplayName", package["displayName"])
    text_element(data, "Description", package["description"])
    text_element(data, "Tags", ",".join(package["keywords"]))
    text_element(data, "Categories", ",".join(package["categories"]))
    text_element(data, "GalleryFlags", "Public")
    group = xml.SubElement(data, "Properties")
    for name, value in properties(package).items():
        xml.SubElement(group, "Property", Id=name, Value=value)
    text_element(data, "License", "extension/LICENSE.txt")
    text_element(data, "Icon", f"extension/{package['icon']}")
    xml.SubElement(xml.SubElement(root, "Installation"), "InstallationTarget", Id="Microsoft.VisualStudio.Code")
    xml.SubElement(root, "Dependencies")
    assets = xml.SubElement(root, "Assets")
    for name, kind in ASSETS.items():
        xml.SubElement(assets, "Asset", Type=kind, Path=f"extension/{name}", Addressable="true")
    xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


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
    absent = [name for name in ASSETS if not (directory / name).is_file()]
    if absent:
        sys.stderr.write(f"pack.py: {directory} has no {', '.join(absent)}\n")
        return 1
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
