// SPDX-License-Identifier: MIT
// Texts that the editor shows and that are no files: nobody can change them.
import * as vscode from "vscode";

const SCHEME = "gpu-agent";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
	private readonly texts = new Map<string, string>();
	private readonly listeners: vscode.Disposable[];
	private last = 0;

	constructor() {
		this.listeners = [
			vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
			vscode.workspace.onDidCloseTextDocument((document) => this.texts.delete(document.uri.toString())),
		];
	}

	/** @param name  what its tab is called */
	add(name: string, text: string): vscode.Uri {
		const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${++this.last}/${name}` });
		this.texts.set(uri.toString(), text);
		return uri;
	}

	async show(name: string, text: string): Promise<void> {
		await vscode.window.showTextDocument(this.add(name, text), { preview: true });
	}

	provideTextDocumentContent(uri: vscode.Uri): string {
		return this.texts.get(uri.toString()) ?? "This was not kept when the editor ended.\n";
	}

	dispose(): void {
		vscode.Disposable.from(...this.listeners).dispose();
	}
}
