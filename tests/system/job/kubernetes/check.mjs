// SPDX-License-Identifier: MIT
// What the schema of Kubernetes says against manifests: usage: check.mjs <JSON-LIST   prints a mistake a line.
//
// The validators are generated from the OpenAPI schema.  They pass fields that the schema has not: a field at which no
// validator has looked is none of the schema.
import { readFileSync } from "node:fs";

function watched(value, path, unread) {
	if (value === null || typeof value !== "object")
		return value;
	const copy = Array.isArray(value) ? [] : {};
	for (const [key, member] of Object.entries(value)) {
		copy[key] = watched(member, `${path}/${key}`, unread);
		if (!Array.isArray(value))
			unread.add(`${path}/${key}`);
	}
	return new Proxy(copy, {
		get(object, key) {
			unread.delete(`${path}/${String(key)}`);
			return object[key];
		},
	});
}

for (const manifest of JSON.parse(readFileSync(0, "utf8"))) {
	const { apiVersion, kind } = manifest;
	const models = await import(`kubernetes-models/${apiVersion}`);
	const unread = new Set();
	try {
		models[kind].prototype.validate.call(watched(manifest, "", unread));
	} catch (error) {
		console.log(`${kind}: ${error.message}`);
	}
	for (const path of unread)
		console.log(`${kind}: ${path} is no field`);
}
