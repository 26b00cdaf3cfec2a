/* SPDX-License-Identifier: MIT */
#include "ctl/report/html.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/terminal/text.h"

/* Width of the bar of html_cell_share(). */
#define SHARE_WIDTH 120

static void put_reference(struct out *o, char c)
{
	switch (c) {
	case '&':
		out_str(o, "&amp;");
		break;
	case '<':
		out_str(o, "&lt;");
		break;
	case '>':
		out_str(o, "&gt;");
		break;
	case '"':
		out_str(o, "&quot;");
		break;
	case '\'':
		out_str(o, "&#39;");
		break;
	default:
		out_char(o, c);
	}
}

static void put_text(struct out *o, const char *s, size_t size)
{
	auto_out struct out safe = { 0 };

	text_escape(&safe, s, size);
	for (size_t i = 0; i < safe.size; i++)
		put_reference(o, safe.data[i]);
	if (out_error(&safe) && !o->error)
		o->error = out_error(&safe);
}

void html_text(struct out *o, const char *s)
{
	if (s)
		put_text(o, s, strlen(s));
}

/* Where to cut so that no character is cut in two. */
static size_t cut_at(const char *s, size_t max)
{
	size_t size = strlen(s), at = 0;

	while (at < size) {
		size_t n = str_utf8_length(s + at, size - at);

		n = n ? n : 1;
		if (at + n > max)
			return at;
		at += n;
	}
	return size;
}

void html_cut(struct out *o, const char *s, size_t max)
{
	size_t n = s ? cut_at(s, max) : 0;

	if (!s)
		return;
	put_text(o, s, n);
	if (s[n])
		out_str(o, "\xe2\x80\xa6");
}

void html_long(struct out *o, const char *s)
{
	if (!s || !s[cut_at(s, HTML_CELL_MAX)]) {
		html_text(o, s);
		return;
	}
	out_str(o, "<details><summary>");
	html_cut(o, s, HTML_CELL_MAX);
	out_str(o, "</summary>");
	html_cut(o, s, HTML_LONG_MAX);
	out_str(o, "</details>");
}

void html_data(struct out *o, const char *json, size_t size)
{
	/* These stand only in strings of JSON, where an escape says the same. */
	for (size_t i = 0, n; i < size; i += n) {
		auto_out struct out shown = { 0 };

		n = 1;
		if (json[i] == '<' || json[i] == '>' || json[i] == '&') {
			out_fmt(o, "\\u%04x", (unsigned char)json[i]);
		} else if (!((unsigned char)json[i] & 0x80)) {
			out_char(o, json[i]);
		} else {
			n = str_utf8_length(json + i, size - i);
			n = n ? n : 1;
			/* What a terminal must not see as it is becomes \uXXXX, or \xXX of a broken byte, which JSON
			 * has none of. */
			text_escape(&shown, json + i, n);
			out_bytes(o, shown.data, shown.size);
		}
	}
}

void html_section(struct out *o, const char *id, const char *heading)
{
	out_fmt(o, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, heading);
}

void html_section_end(struct out *o)
{
	out_str(o, "</section>\n");
}

void html_table(struct out *o, const char *caption, const struct html_column *columns, size_t n)
{
	out_fmt(o,
		"<section class=\"scroll\" tabindex=\"0\" aria-label=\"%s, "
		"table\"><table>\n<caption>%s</caption>\n<thead><tr>",
		caption, caption);
	for (size_t i = 0; i < n; i++)
		if (columns[i].title)
			out_fmt(o, "<th scope=\"col\"%s>%s</th>", columns[i].number ? " class=\"n\"" : "",
				columns[i].title);
	out_str(o, "</tr></thead>\n<tbody>\n");
}

void html_table_end(struct out *o)
{
	out_str(o, "</tbody></table></section>\n");
}

void html_cell(struct out *o, const char *s)
{
	out_str(o, "<td>");
	html_long(o, s);
	out_str(o, "</td>");
}

void html_cell_class(struct out *o, const char *class_name, const char *s)
{
	out_fmt(o, "<td class=\"%s\">", class_name);
	html_long(o, s);
	out_str(o, "</td>");
}

void html_cell_u64(struct out *o, uint64_t v)
{
	out_fmt(o, "<td class=\"n\">%" PRIu64 "</td>", v);
}

void html_cell_u64_if(struct out *o, bool has, uint64_t v)
{
	if (has)
		html_cell_u64(o, v);
	else
		out_str(o, "<td class=\"n\"></td>");
}

void html_cell_share(struct out *o, uint64_t part, uint64_t whole)
{
	/* Both may be anything: a queue's indices are what a process wrote. */
	unsigned width = whole && part <= whole ? (unsigned)((double)part / (double)whole * SHARE_WIDTH) : 0;

	out_fmt(o,
		"<td><svg class=\"share\" width=\"%d\" height=\"10\" aria-hidden=\"true\"><rect class=\"of\" "
		"width=\"%d\" height=\"10\"></rect>"
		"<rect class=\"is\" width=\"%u\" height=\"10\"></rect></svg></td>",
		SHARE_WIDTH, SHARE_WIDTH, width);
}
