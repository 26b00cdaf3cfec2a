// SPDX-License-Identifier: MIT
// The strictest rules of typescript-eslint, on the sources of the extension.
// usage: node check.mjs MODULES DIRECTORY    MODULES: node_modules with eslint; DIRECTORY: with tsconfig.json and src
import { createRequire } from "node:module";
import path from "node:path";

const [modules, directory] = process.argv.slice(2).map((name) => path.resolve(name));
const need = createRequire(path.join(modules, "x.js"));
const { ESLint } = need("eslint");
const tseslint = need("typescript-eslint");

const eslint = new ESLint({
	cwd: directory,
	overrideConfigFile: true,
	overrideConfig: [
		// The client is generated, and has its own checks.
		{ ignores: ["src/client/**"] },
		...tseslint.configs.strictTypeChecked.map((config) => ({ ...config, files: ["src/**/*.ts"] })),
		{
			files: ["src/**/*.ts"],
			languageOptions: { parserOptions: { project: "tsconfig.json", tsconfigRootDir: directory } },
			linterOptions: { reportUnusedDisableDirectives: "error" },
			rules: {
				"@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
				// A number in a text is what it looks like.
				"@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
			},
		},
	],
});
const results = await eslint.lintFiles(["src/**/*.ts"]);
const checked = results.filter((r) => !r.filePath.includes("/client/")).length;
for (const { filePath, messages } of results)
	for (const m of messages)
		console.log(`${path.relative(directory, filePath)}:${m.line}:${m.column}: ${m.message} (${m.ruleId})`);
console.error(checked);
process.exitCode = results.some((r) => r.messages.length) ? 1 : 0;
