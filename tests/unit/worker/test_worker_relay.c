/* SPDX-License-Identifier: MIT */
/* Looks at processes that may never answer, and what is read in such a look. */
#include <errno.h>
#include <unistd.h>

#include "agentd/worker/inspect/command_line.h"
#include "agentd/worker/target/relay.h"
#include "base/clock.h"
#include "testlib.h"

#define MANY 100

/* What looks share. */
struct scene {
	int pipe[2];
	bool blocks[MANY];
	uint32_t looked[MANY], lost[MANY], unasked[MANY];
	size_t last;
	uint32_t late; /* Looks that were let in after they were lost. */
};

static void look(void *ctx, struct relay_turn *turn, size_t i)
{
	struct scene *s = ctx;
	const int fd = s->pipe[0];
	const bool blocks = s->blocks[i];
	char byte;

	TEST_EQ(i >= s->last, true);
	s->last = i;
	relay_leave(turn);
	if (blocks && read(fd, &byte, 1) < 0)
		return;
	if (!relay_enter(turn))
		return;
	s->late += blocks;
	s->looked[i]++;
}

static void lost(void *ctx, size_t i, bool asked)
{
	struct scene *s = ctx;

	s->lost[i] += asked;
	s->unasked[i] += !asked;
}

static void begin(struct scene *s)
{
	*s = (struct scene){ 0 };
	TEST_EQ_FATAL(pipe(s->pipe), 0);
}

/* Whoever was left behind comes back, and touches nothing. */
static void end(struct scene *s)
{
	const uint64_t deadline = clock_deadline_ms(20000);
	static const char bytes[MANY];

	TEST_EQ(write(s->pipe[1], bytes, sizeof(bytes)), (int)sizeof(bytes));
	while (relay_is_stuck() && clock_left_ms(deadline))
		usleep(1000);
	TEST_EQ(relay_is_stuck(), false);
	TEST_EQ(s->late, 0);
	close(s->pipe[0]);
	close(s->pipe[1]);
}

static void each_is_looked_at_once(void)
{
	struct relay_budget b = { 0 };
	struct scene s;
	const struct relay_work work = { &s, look, lost };

	begin(&s);
	relay_run(&b, &work, MANY);
	relay_run(&b, &work, 0);
	for (size_t i = 0; i < MANY; i++)
		TEST_ROW_EQ(i, s.looked[i] == 1 && !s.lost[i] && !s.unasked[i], true);
	TEST_EQ(b.stuck, 0);
	TEST_EQ(b.waited_ns, 0);
	TEST_EQ(relay_is_stuck(), false);
	end(&s);
}

static void one_that_does_not_answer_is_lost_alone(void)
{
	struct relay_budget b = { 0 };
	struct scene s;
	const struct relay_work work = { &s, look, lost };

	begin(&s);
	s.blocks[0] = s.blocks[40] = s.blocks[MANY - 1] = true;
	relay_run(&b, &work, MANY);
	for (size_t i = 0; i < MANY; i++) {
		TEST_ROW_EQ(i, s.looked[i], s.blocks[i] ? 0 : 1);
		TEST_ROW_EQ(i, s.lost[i], s.blocks[i] ? 1 : 0);
		TEST_ROW_EQ(i, s.unasked[i], 0);
	}
	TEST_EQ(b.stuck, 3);
	TEST_EQ(relay_is_stuck(), true);
	end(&s);
}

static void threads_have_a_limit(void)
{
	struct relay_budget b = { 0 };
	struct scene s;
	const struct relay_work work = { &s, look, lost };
	uint32_t n_lost = 0, n_unasked = 0;

	begin(&s);
	for (size_t i = 0; i < MANY; i++)
		s.blocks[i] = true;
	relay_run(&b, &work, MANY);
	for (size_t i = 0; i < MANY; i++) {
		n_lost += s.lost[i];
		n_unasked += s.unasked[i];
	}
	TEST_EQ(n_lost, RELAY_STUCK_MAX);
	TEST_EQ(n_unasked, MANY - RELAY_STUCK_MAX);
	/* Patience with many is less than with few. */
	TEST_EQ(b.waited_ns < RELAY_STUCK_MAX * RELAY_PATIENCE_MS * UINT64_C(1000000), true);
	end(&s);
}

/* ------------------------------------------------------------------ command lines ------------ */

static void parse(const char *text, size_t size, const char *expected, bool is_cut)
{
	struct command_line line;

	command_line_parse(text, size, &line);
	TEST_STR(line.text, expected);
	TEST_EQ(line.is_cut, is_cut);
}

static void arguments_are_a_line(void)
{
	struct command_line line;
	char text[2 * COMMAND_LINE_MAX];

	parse("python3\0train.py\0--lr\0" "1\0", 24, "python3 train.py --lr 1", false);
	parse("a title\0\0\0\0", 11, "a title", false);
	parse("a\0\0b", 4, "a  b", false);
	parse("", 0, "", false);
	parse("\0\0", 2, "", false);
	parse("a\nb\x1b[1m\x7f", 8, "a?b?[1m?", false);
	parse("\xc3\xa9\0\xc3", 4, "\xc3\xa9 ?", false);
	memset(text, 'x', sizeof(text));
	command_line_parse(text, COMMAND_LINE_MAX, &line);
	TEST_EQ(line.is_cut, false);
	TEST_EQ(strlen(line.text), COMMAND_LINE_MAX);
	command_line_parse(text, COMMAND_LINE_MAX + 1, &line);
	TEST_EQ(line.is_cut, true);
	TEST_EQ(strlen(line.text), COMMAND_LINE_MAX);
	/* No character is cut in two. */
	memcpy(text + COMMAND_LINE_MAX - 1, "\xc3\xa9", 2);
	command_line_parse(text, sizeof(text), &line);
	TEST_EQ(line.is_cut, true);
	TEST_EQ(strlen(line.text), COMMAND_LINE_MAX - 1);
}

static void a_command_line_is_read(void)
{
	struct command_line line;

	TEST_EQ_FATAL(command_line_read(getpid(), &line), 0);
	TEST_EQ(strstr(line.text, "test_worker_relay") != NULL, true);
	TEST_EQ(command_line_read(4194304, &line), -ENOENT);
}

TEST_SUITE(worker_relay, TEST(each_is_looked_at_once), TEST(one_that_does_not_answer_is_lost_alone),
	   TEST(threads_have_a_limit), TEST(arguments_are_a_line), TEST(a_command_line_is_read));
