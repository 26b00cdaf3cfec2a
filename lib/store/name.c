/* SPDX-License-Identifier: MIT */
/*
 * Names of files: ID.uUID.pPID.COMM.RULE.KEY.BOOT.SUFFIX.  What the limits need to know is in the
 * name, so that deleting opens no file.  Characters other than letters, digits, `-` and `_` become
 * %XX.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "store/internal.h"

#define PARTS	  7
#define ID_LENGTH (STORE_ID_SIZE - 1)

const char *const name_suffixes[NAME_KIND_COUNT] = {
	[NAME_RECORD] = "record", [NAME_CORE] = "core", [NAME_CORE_ZST] = "core.zst", [NAME_PIN] = "pin",
};

/*
 * The hash is FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/).  When two keys have the same,
 * the newest body of one of them loses its protection, and nothing else happens.
 */
uint64_t name_key_hash(const char *key)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
	return h;
}

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static void escape(const char *s, char *ret, size_t size)
{
	size_t n = 0;

	for (; *s && n + 4 < size; s++)
		if (is_plain((unsigned char)*s))
			ret[n++] = *s;
		else
			n += (size_t)snprintf(ret + n, size - n, "%%%02X", (unsigned char)*s);
	ret[n] = '\0';
}

void name_stem(const struct store_meta *m, char ret[NAME_MAX + 1])
{
	char comm[3 * sizeof(m->comm) + 4], rule[3 * sizeof(m->rule) + 4];

	escape(m->comm, comm, sizeof(comm));
	escape(m->rule, rule, sizeof(rule));
	snprintf(ret, NAME_MAX + 1, "%s.u%u.p%u.%s.%s.%016llx.%s", m->id, m->uid, m->pid, comm,
		 rule, (unsigned long long)name_key_hash(m->key), m->boot_id);
}

void name_file(const char *stem, enum name_kind kind, bool unfinished, char ret[NAME_MAX + 1])
{
	snprintf(ret, NAME_MAX + 1, "%s%.*s.%s", unfinished ? "." : "", NAME_MAX - 11, stem,
		 name_suffixes[kind]);
}

static bool digits(const char *s, size_t n, uint64_t *ret)
{
	char text[21];

	if (!n || n >= sizeof(text))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	return str_to_u64(text, 0, UINT64_MAX, ret) == 0;
}

static bool hex(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)s[i]) || isupper((unsigned char)s[i]))
			return false;
		v = v << 4 | (uint64_t)(s[i] <= '9' ? s[i] - '0' : s[i] - 'a' + 10);
	}
	*ret = v;
	return true;
}

/*
 * Read the time in an id.  The days since 1970 are computed here (proleptic Gregorian), because
 * timegm() accepts what is no date.
 */
static bool time_of_id(const char *id, uint64_t *ret)
{
	uint64_t date, clock, serial, year, month, day, era_day;

	if (!digits(id, 8, &date) || id[8] != 'T' || !digits(id + 9, 6, &clock) || id[15] != '-' ||
	    !hex(id + 16, 8, &serial))
		return false;
	year = date / 10000;
	month = date / 100 % 100;
	day = date % 100;
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || clock / 10000 > 23 ||
	    clock / 100 % 100 > 59 || clock % 100 > 60)
		return false;
	/* A year that begins in March has its leap day last. */
	year -= month < 3;
	month = (month + 9) % 12;
	era_day = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
	*ret = (era_day - 719468) * 86400 + clock / 10000 * 3600 + clock / 100 % 100 * 60 + clock % 100;
	return true;
}

static bool is_escaped(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_plain((unsigned char)s[i]))
			continue;
		if (s[i] != '%' || n - i < 3 || !isxdigit((unsigned char)s[i + 1]) ||
		    !isxdigit((unsigned char)s[i + 2]))
			return false;
		i += 2;
	}
	return true;
}

static bool parse_parts(const char *part[PARTS], const size_t size[PARTS], struct store_item *ret)
{
	uint64_t uid, pid, boot;

	if (size[0] != ID_LENGTH || !time_of_id(part[0], &ret->time_s) || size[1] < 2 ||
	    part[1][0] != 'u' || !digits(part[1] + 1, size[1] - 1, &uid) || uid > UINT32_MAX ||
	    size[2] < 2 || part[2][0] != 'p' || !digits(part[2] + 1, size[2] - 1, &pid) ||
	    pid > INT32_MAX || !is_escaped(part[3], size[3]) || !is_escaped(part[4], size[4]) ||
	    size[5] != 16 || !hex(part[5], 16, &ret->key_hash) || size[6] > 32 ||
	    !hex(part[6], size[6], &boot))
		return false;
	memcpy(ret->id, part[0], ID_LENGTH);
	ret->id[ID_LENGTH] = '\0';
	ret->uid = (uint32_t)uid;
	ret->pid = (uint32_t)pid;
	return true;
}

static enum name_kind suffix_kind(const char *suffix)
{
	for (int k = NAME_RECORD; k < NAME_KIND_COUNT; k++)
		if (!strcmp(suffix, name_suffixes[k]))
			return (enum name_kind)k;
	return NAME_FOREIGN;
}

void name_parse(const char *file, struct name *ret)
{
	const char *part[PARTS], *at, *start;
	size_t size[PARTS];

	*ret = (struct name){ .unfinished = file[0] == '.' };
	at = start = file + ret->unfinished;
	if (strlen(file) > NAME_MAX)
		return;
	for (size_t i = 0; i < PARTS; i++) {
		const char *dot = strchr(at, '.');

		if (!dot)
			return;
		part[i] = at;
		size[i] = (size_t)(dot - at);
		at = dot + 1;
	}
	if (!parse_parts(part, size, &ret->facts))
		return;
	ret->kind = suffix_kind(at);
	ret->stem_size = (size_t)(at - 1 - start);
	memcpy(ret->facts.name, start, ret->stem_size);
	ret->facts.name[ret->stem_size] = '\0';
}
