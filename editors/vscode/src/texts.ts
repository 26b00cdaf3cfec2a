// SPDX-License-Identifier: MIT
// Texts that the editor shows and that are no files: nobody can change them.
import * as vscode from "vscode";

const SCHEME = "gpu-agent";

export interface Text {
	/** What its tab is called. */
	name: string;
	text: string;
}

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

	async show(text: Text): Promise<void> {
		await this.open([text], ([uri]) => vscode.window.showTextDocument(uri, { preview: true }));
	}

	/** Two of them side by side. */
	async compare(left: Text, right: Text, title: string): Promise<void> {
		await this.open([left, right], (uris) => vscode.commands.executeCommand("vscode.diff", ...uris, title, { preview: false }));
	}

	/** What the editor does not open it does not close either, and nobody would drop its text. */
	private async open(texts: Text[], show: (uris: vscode.Uri[]) => Thenable<unknown>): Promise<void> {
		const uris = texts.map(({ name }) => vscode.Uri.from({ scheme: SCHEME, path: `/${++this.last}/${name}` }));
		uris.forEach((uri, i) => this.texts.set(uri.toString(), texts[i].text));
		try {
			await show(uris);
		} catch (error) {
			uris.forEach((uri) => this.texts.delete(uri.toString()));
			throw error;
		}
	}

	provideTextDocumentContent(uri: vscode.Uri): string {
		return this.texts.get(uri.toString()) ?? "This was not kept when the editor ended.\n";
	}

	dispose(): void {
		vscode.Disposable.from(...this.listeners).dispose();
	}
}
