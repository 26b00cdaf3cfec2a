// SPDX-License-Identifier: MIT
// Core files in the explorer.  What is opened there is a page with what the waves did, and a session of the debugger.
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { commandLink, document, escaped } from "./html";
import { run } from "./program";
import type { Sessions } from "./sessions";
import { openCore } from "./start";

const VIEW = "gpu-agent.core";

/** @throws for a file that the adapter cannot reach */
export function pathOf(uri: vscode.Uri): string {
	if (uri.scheme !== "file")
		throw new Error(`${uri.toString(true)} is no file of the machine on which the GPU agent runs`);
	return uri.fsPath;
}

function page(file: string, nonce: string, text: string): string {
	// A URI would come back as one of the machine on which the window is.
	return document({
		title: file, nonce, style: "pre { font-family: var(--vscode-editor-font-family); font-size: var(--vscode-editor-font-size); }",
		body: `<p>${commandLink("gpu-agent.openCore", [file], "Open in the debugger")}</p>\n<pre>${escaped(text)}</pre>`,
	});
}

async function report(file: string): Promise<string> {
	try {
		const { stdout, stderr } = await run(["analyze", "--color=never", "--", file]);
		return stdout + stderr;
	} catch (error) {
		return error instanceof Error ? error.message : String(error);
	}
}

/** Of the tabs with which the editor has started, no sessions begin: nobody has just opened those. */
function namesOfTabs(): Set<string> {
	const inputs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).map((tab) => tab.input);
	return new Set(inputs.flatMap((i) => i instanceof vscode.TabInputCustom && i.viewType === VIEW ? [i.uri.toString()] : []));
}

export function coreEditor(sessions: Sessions): vscode.Disposable {
	const old = namesOfTabs();
	return vscode.window.registerCustomEditorProvider(VIEW, {
		openCustomDocument: (uri) => ({ uri, dispose: () => undefined }),
		resolveCustomEditor: ({ uri }, panel) => {
			const file = pathOf(uri);
			const nonce = randomUUID();
			panel.webview.options = { enableCommandUris: ["gpu-agent.openCore"] };
			panel.webview.html = page(file, nonce, "");
			void report(file).then((text) => { panel.webview.html = page(file, nonce, text); });
			if (!old.delete(uri.toString()))
				void openCore(sessions, file);
		},
	}, { webviewOptions: { enableFindWidget: true } });
}
