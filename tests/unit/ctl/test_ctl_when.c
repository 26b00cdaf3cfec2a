/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "ctl/document/when.h"
#include "testlib.h"

/* Sat 2026-11-21 09:17:33 UTC */
#define NOW UINT64_C(1795252653)

static void times_are_understood(void)
{
	static const struct {
		const char *text;
		uint64_t s;
	} rows[] = {
		{ "now", NOW }, { "today", NOW - 33453 }, { "yesterday", NOW - 33453 - 86400 },
		{ "tomorrow", NOW - 33453 + 86400 }, { "@1764000000", 1764000000 }, { "@0", 0 },
		{ "-1h", NOW - 3600 }, { "-1h30m", NOW - 5400 }, { "-90", NOW - 90 }, { "+2d", NOW + 172800 },
		{ "2h ago", NOW - 7200 }, { "1d12h ago", NOW - 129600 }, { "-9999w", 0 },
		{ "2026-11-21", NOW - 33453 }, { "2026-11-21 09:17:33", NOW }, { "2026-11-21T09:17:33Z", NOW },
		{ "2026-11-21 09:17", NOW - 33 }, { "09:17", NOW - 33 }, { "2024-02-29", 1709164800 },
	};

	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t us = 1;

		TEST_ROW_EQ(i, when_parse(rows[i].text, NOW * 1000000, &us), 0);
		TEST_ROW_EQ(i, us / 1000000, rows[i].s);
	}
}

/* A time without zone is local, one with Z is not. */
static void zones_count(void)
{
	uint64_t us;
	char text[32];

	setenv("TZ", "XYZ-02:00", 1);
	tzset();
	TEST_EQ(when_parse("2026-11-21T09:17:33", NOW * 1000000, &us), 0);
	TEST_EQ(us / 1000000, NOW - 7200);
	TEST_EQ(when_parse("2026-11-21T09:17:33Z", NOW * 1000000, &us), 0);
	TEST_EQ(us / 1000000, NOW);
	when_format(NOW * 1000000, text, sizeof(text));
	TEST_STR(text, "Sat 2026-11-21 11:17:33");
	when_format(UINT64_MAX, text, sizeof(text));
	TEST_STR(text, "");
}

static void mistakes_are_refused(void)
{
	static const char *const rows[] = {
		"", "soon", "-", "+", " ago", "-h", "-1x", "-1h x", "@", "@-1", "@99999999999999", "2026-13-01", "2026-02-30",
		"2026-1-1", "2026-11-21 25:00", "2026-11-21x", "2026-11-21 09:17:33 Z", "1969-12-31", "09:60", "9:17",
		"-99999999999999999999w", "0000000000000000000000000000000000000000000000000000000000000000000000",
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t us;

		TEST_ROW_EQ(i, when_parse(rows[i], NOW * 1000000, &us), -EINVAL);
	}
}

TEST_SUITE(ctl_when, TEST(times_are_understood), TEST(zones_count), TEST(mistakes_are_refused));
