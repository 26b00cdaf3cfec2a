/* SPDX-License-Identifier: MIT */
/* Reads forms of time such as journalctl(1) knows, in this machine's time zone. */
#include "ctl/document/when.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/str.h"

#define SECOND	   UINT64_C(1000000)
#define TEXT_MAX   64
#define EPOCH_MAX  UINT64_C(253402300799) /* The last second of the year 9999. */

/* Read exactly n digits, as a number from min to max. */
static bool take_digits(const char **at, int n, int min, int max, int *ret)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		v = v * 10 + (**at - '0');
	}
	*ret = v;
	return v >= min && v <= max;
}

static bool take_char(const char **at, char c)
{
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

/* Read `09:17[:33]`. */
static bool take_clock(const char **at, struct tm *tm)
{
	if (!take_digits(at, 2, 0, 23, &tm->tm_hour) || !take_char(at, ':') ||
	    !take_digits(at, 2, 0, 59, &tm->tm_min))
		return false;
	return !take_char(at, ':') || take_digits(at, 2, 0, 60, &tm->tm_sec);
}

/* Read `2026-11-21`. */
static bool take_date(const char **at, struct tm *tm)
{
	int year;

	if (!take_digits(at, 4, 1970, 9999, &year) || !take_char(at, '-') ||
	    !take_digits(at, 2, 1, 12, &tm->tm_mon) || !take_char(at, '-') ||
	    !take_digits(at, 2, 1, 31, &tm->tm_mday))
		return false;
	tm->tm_year = year - 1900;
	tm->tm_mon--;
	return true;
}

/* The time of a calendar date; -EINVAL for a day that the month does not have. */
static int finish(struct tm *tm, bool utc, uint64_t *ret_us)
{
	int day = tm->tm_mday, month = tm->tm_mon;
	time_t t;

	tm->tm_isdst = -1;
	t = utc ? timegm(tm) : mktime(tm);
	/* The C library takes February 30th for a day in March. */
	if (t < 0 || tm->tm_mon != month || tm->tm_mday != day)
		return -EINVAL;
	*ret_us = (uint64_t)t * SECOND;
	return 0;
}

static int parse_date(const char *text, const struct tm *today, uint64_t *ret_us)
{
	struct tm tm = { 0 };
	const char *at = text;
	bool utc = false;

	/* A clock time alone is one of today. */
	if (strlen(text) > 2 && text[2] == ':') {
		tm = *today;
		tm.tm_sec = 0;
		return take_clock(&at, &tm) && !*at ? finish(&tm, false, ret_us) : -EINVAL;
	}
	if (!take_date(&at, &tm))
		return -EINVAL;
	if (take_char(&at, 'T') || take_char(&at, ' ')) {
		if (!take_clock(&at, &tm))
			return -EINVAL;
		utc = take_char(&at, 'Z');
	}
	return *at ? -EINVAL : finish(&tm, utc, ret_us);
}

static int parse_day(int offset, const struct tm *today, uint64_t *ret_us)
{
	struct tm tm = { .tm_year = today->tm_year,
			 .tm_mon = today->tm_mon,
			 .tm_mday = today->tm_mday + offset,
			 .tm_isdst = -1 };
	time_t t = mktime(&tm);

	if (t < 0)
		return -EINVAL;
	*ret_us = (uint64_t)t * SECOND;
	return 0;
}

/* Read `1h30m`: one or more numbers, each with its unit; a number without one counts seconds. */
static int parse_span(const char *text, size_t size, uint64_t *ret_us)
{
	char part[TEXT_MAX];
	uint64_t sum = 0, s;

	for (size_t at = 0, n; at < size; at += n) {
		n = strspn(text + at, "0123456789");
		n += at + n < size;
		/* One byte behind the digits is the unit; str_to_age() judges it. */
		if (n >= sizeof(part) || at + n > size)
			return -EINVAL;
		memcpy(part, text + at, n);
		part[n] = '\0';
		if (str_to_age(part, &s) < 0 || s > EPOCH_MAX || sum + s > EPOCH_MAX)
			return -EINVAL;
		sum += s;
	}
	*ret_us = sum * SECOND;
	return size ? 0 : -EINVAL;
}

static int parse_relative(const char *text, uint64_t now_us, uint64_t *ret_us)
{
	static const char ago[] = " ago";
	size_t n = strlen(text), tail = sizeof(ago) - 1;
	uint64_t span;
	int r;

	if (n > tail && !strcmp(text + n - tail, ago))
		r = parse_span(text, n - tail, &span);
	else
		r = parse_span(text + 1, n - 1, &span);
	if (r < 0)
		return r;
	if (*text == '+')
		*ret_us = now_us + span;
	else
		*ret_us = now_us > span ? now_us - span : 0;
	return 0;
}

int when_parse(const char *text, uint64_t now_us, uint64_t *ret_us)
{
	static const struct {
		const char *word;
		int day;
	} days[] = { { "yesterday", -1 }, { "today", 0 }, { "tomorrow", 1 } };
	const time_t now = (time_t)(now_us / SECOND);
	struct tm today;
	uint64_t s;
	size_t n = strlen(text);

	if (!n || n > TEXT_MAX || !localtime_r(&now, &today))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(days); i++)
		if (!strcmp(text, days[i].word))
			return parse_day(days[i].day, &today, ret_us);
	if (!strcmp(text, "now")) {
		*ret_us = now_us;
		return 0;
	}
	if (*text == '@') {
		if (str_to_u64(text + 1, 0, EPOCH_MAX, &s) < 0)
			return -EINVAL;
		*ret_us = s * SECOND;
		return 0;
	}
	if (*text == '-' || *text == '+' || strstr(text, " ago"))
		return parse_relative(text, now_us, ret_us);
	return parse_date(text, &today, ret_us);
}

void when_format(uint64_t us, char *ret, unsigned size)
{
	const time_t t = (time_t)(us / SECOND);
	struct tm tm;

	ret[0] = '\0';
	if (us / SECOND <= EPOCH_MAX && localtime_r(&t, &tm))
		strftime(ret, size, "%a %Y-%m-%d %H:%M:%S", &tm);
}
