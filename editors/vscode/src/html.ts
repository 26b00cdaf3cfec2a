// SPDX-License-Identifier: MIT
// Pages that the editor shows.  No script runs in them: whatever a program or a file says is text.

export function escaped(text: string): string {
	return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** A link that runs a command with such arguments, if its page may. */
export function commandLink(command: string, args: unknown[], text: string, attributes = ""): string {
	const target = `command:${command}?${encodeURIComponent(JSON.stringify(args))}`;
	return `<a href="${escaped(target)}"${attributes && ` ${attributes}`}>${escaped(text)}</a>`;
}

export interface Page {
	title: string;
	/** Of its element of styles. */
	nonce: string;
	style: string;
	body: string;
}

/** Nothing is fetched, and nothing runs. */
export function document({ title, nonce, style, body }: Page): string {
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${escaped(nonce)}'">
<title>${escaped(title)}</title>
<style nonce="${escaped(nonce)}">${style}</style>
</head>
<body>
${body}
</body>
</html>`;
}
