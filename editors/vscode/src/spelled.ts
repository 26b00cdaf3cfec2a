// SPDX-License-Identifier: MIT
// Texts that a process has chosen, such as its name and its arguments.

/**
 * Spells out what cannot be seen: control characters, and those that turn the direction of writing, with which a text
 * looks like another one, or like more than one line.
 */
export function spelled(text: string): string {
	return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => {
		const code = c.codePointAt(0) ?? 0;
		return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
	});
}

/** The beginning of a text that is too long, with an ellipsis. */
export function shortened(text: string, longest: number): string {
	const characters = Array.from(text);
	return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : text;
}
