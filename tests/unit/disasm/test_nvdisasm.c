/* SPDX-License-Identifier: MIT */
/* Instructions of NVIDIA's processors, by programs that stand in for nvdisasm; tests/peers has the real one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disasm/backend.h"
#include "disasm/confine.h"
#include "testlib.h"

DEFINE_AUTO(struct disasm *, disasm_close);

#define START UINT64_C(0x7f0a00000100)
#define WORD  16u

/* Where programs lie, and what they try to make. */
static struct {
	char directory[64], program[128], made[80];
} place;

static void write_program(const char *script)
{
	FILE *f;

	if (!place.directory[0]) {
		strcpy(place.directory, "/tmp/nvdisasm-test-XXXXXX");
		CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(place.directory));
		snprintf(place.program, sizeof(place.program), "%s/nvdisasm", place.directory);
		snprintf(place.made, sizeof(place.made), "%s/made", place.directory);
	}
	f = fopen(place.program, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	TEST_EQ_FATAL(chmod(place.program, 0700), 0);
}

static void remove_programs(void)
{
	unlink(place.program);
	unlink(place.made);
	rmdir(place.directory);
	memset(&place, 0, sizeof(place));
}

/* Twelve instructions around the fourth one. */
struct listing {
	struct disasm *d;
	struct disasm_line lines[12];
	ssize_t n;
};

static void list_bytes(struct listing *l, const char *program, uint32_t ms, const uint8_t *bytes)
{
	const struct disasm_options o = { .cpu = "sm_90", .program = program, .program_ms = ms };
	const struct disasm_range r = { .start = START, .around = START + 3 * WORD, .before = 2,
					.count = 3 };
	size_t at;

	memset(l, 0, sizeof(*l));
	TEST_EQ_FATAL(disasm_open(&o, &l->d), 0);
	l->n = disasm_lines(l->d, bytes, 8 * WORD, &r, l->lines, &at);
	TEST_EQ_FATAL(l->n, 5);
	TEST_EQ(at, 2);
	for (ssize_t i = 0; i < l->n; i++) {
		TEST_ROW_EQ(i, l->lines[i].address, START + (uint64_t)(i + 1) * WORD);
		TEST_ROW_EQ(i, l->lines[i].size, WORD);
	}
}

static void list(struct listing *l, const char *script, uint32_t ms)
{
	static const uint8_t code[8 * WORD] = "BAD, and then whatever there is";

	write_program(script);
	list_bytes(l, place.program, ms, code);
}

static void are_words(const struct listing *l, const char *why)
{
	for (ssize_t i = 0; i < l->n; i++)
		CU_ASSERT(!l->lines[i].decoded && !strncmp(l->lines[i].text, ".quad 0x", 8));
	CU_ASSERT_PTR_NULL(disasm_source(l->d));
	CU_ASSERT_PTR_NOT_NULL_FATAL(disasm_note(l->d));
	if (!strstr(disasm_note(l->d), why) || !strstr(disasm_note(l->d), "sm_90 are shown as their words"))
		test_assert_str(-1, disasm_note(l->d), why, "note", __FILE__, __LINE__);
}

/* It is told all that is shown, once; what it leaves out is shown as words. */
static void instructions_are_what_it_prints(void)
{
	struct listing l;

	list(&l,
	     "[ \"$*\" = '--binary SM90 --base-address 0x7f0a00000110 --print-raw --no-dataflow /dev/stdin' ] || exit 3\n"
	     "echo '\t.headerflags\t@\"EF_CUDA_SM90\"'\n"
	     "echo '        /*7f0a00000110*/                   MOV R2, RZ ;'\n"
	     "echo '        /*7f0a00000120*/               @P0 BRA 0x7f0a00000110 ;  '\n"
	     "echo '        /*7f0a00000140*/                   NOP;'\n"
	     "echo '        /*7f0a00000150*/'\n"
	     "echo '        /*7f0a00000160*/                   EXIT ;'",
	     0);
	TEST_STR(l.lines[0].text, "MOV R2, RZ");
	TEST_STR(l.lines[1].text, "@P0 BRA 0x7f0a00000110");
	CU_ASSERT_FALSE(l.lines[2].decoded);
	TEST_STR(l.lines[3].text, "NOP");
	CU_ASSERT_FALSE(l.lines[4].decoded);
	TEST_STR(disasm_source(l.d), place.program);
	CU_ASSERT_PTR_NULL(disasm_note(l.d));
	disasm_close(l.d);
	remove_programs();
}

/* One that it does not know costs it all others: it is asked again without that one. */
static void unknown_words_stay_words(void)
{
	uint8_t code[8 * WORD] = { 0 };
	struct listing l;

	memcpy(code + WORD, "BADBADBADBADBAD\n", WORD);
	write_program("read -r first </dev/stdin\n"
		      "case \"$first\" in\n"
		      "BAD*) echo \"nvdisasm error   : Unrecognized operation at address 0x7f0a00000110\" >&2; exit 1 ;;\n"
		      "esac\n"
		      "for i in 1 2 3 4 5; do echo \"/*7f0a000001${i}0*/ NOP ;\"; done");
	list_bytes(&l, place.program, 0, code);
	TEST_STR(l.lines[0].text, ".quad 0x4142444142444142, 0x0a44414244414244");
	for (size_t i = 1; i < 5; i++)
		TEST_ROW_STR(i, l.lines[i].text, "NOP");
	CU_ASSERT_PTR_NULL(disasm_note(l.d));
	disasm_close(l.d);
	remove_programs();
}

static void programs_that_fail_are_named(void)
{
	static const struct { const char *script, *why; } rows[] = {
		{ "echo 'nvdisasm fatal   : Value SM90 is not defined' >&2; exit 1",
		  "/nvdisasm fails: nvdisasm fatal   : Value SM90 is not defined" },
		{ "exit 4", "/nvdisasm fails: exit status 4" },
		{ "printf '\\033[2Jbroken\\001' >&2; exit 1", "/nvdisasm fails: ?[2Jbroken?" },
		{ "echo; printf '/*zz*/ MOV\\000\\377'", "/nvdisasm says of them is not understood" },
		{ "exit 0", "/nvdisasm says of them is not understood" },
		{ "while :; do echo '                                                        '; done",
		  "/nvdisasm fails: File size limit exceeded" },
		{ "while :; do echo 'at address 0x1' >&2; done",
		  "/nvdisasm fails: File size limit exceeded" },
	};
	struct listing l;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		list(&l, rows[i].script, 0);
		are_words(&l, rows[i].why);
		disasm_close(l.d);
	}
	TEST_EQ(chmod(place.program, 0600), 0);
	list_bytes(&l, place.program, 0, (const uint8_t[8 * WORD]){ 0 });
	are_words(&l, "/nvdisasm fails: Permission denied");
	disasm_close(l.d);
	remove_programs();
	list_bytes(&l, "/nonexistent/nvdisasm", 0, (const uint8_t[8 * WORD]){ 0 });
	are_words(&l, "/nonexistent/nvdisasm fails: No such file or directory");
	disasm_close(l.d);
}

/* What hangs costs its time, and what hangs again is not asked any more. */
static void programs_that_hang_are_ended(void)
{
	static const uint8_t other[3][8 * WORD] = { { 1 }, { 2 }, { 3 } };
	const struct disasm_range r = { .start = START, .around = START, .count = 1 };
	struct listing l;
	size_t at;

	list(&l, "while :; do :; done", 200);
	are_words(&l, "/nvdisasm did not end within 200 ms");
	TEST_EQ(disasm_lines(l.d, other[0], sizeof(other[0]), &r, l.lines, &at), 1);
	/* It would answer now. */
	write_program("echo '/*7f0a00000100*/ NOP ;'");
	for (size_t i = 1; i < 3; i++) {
		TEST_ROW_EQ(i, disasm_lines(l.d, other[i], sizeof(other[i]), &r, l.lines, &at), 1);
		TEST_ROW_EQ(i, l.lines[0].decoded, false);
	}
	disasm_close(l.d);
	remove_programs();
}

/* The bytes may be made to do harm in it: it makes no file, starts nothing, and signals nobody. */
static void the_program_can_only_answer(void)
{
	char script[700];
	struct listing l;

	write_program("");
	snprintf(script, sizeof(script),
		 "read -r x </etc/passwd && echo '/*7f0a00000110*/ READS ;'\n"
		 "echo x >%s && echo '/*7f0a00000120*/ WRITES ;'\n"
		 "kill -0 %d && echo '/*7f0a00000130*/ SIGNALS ;'\n"
		 "true", place.made, (int)getpid());
	list(&l, script, 0);
	TEST_STR(l.lines[0].text, "READS");
	CU_ASSERT_FALSE(l.lines[1].decoded);
	CU_ASSERT_FALSE(l.lines[2].decoded);
	CU_ASSERT(access(place.made, F_OK) < 0);
	disasm_close(l.d);
	list(&l, "(echo '/*7f0a00000110*/ FORKS ;')", 0);
	are_words(&l, "Cannot fork");
	disasm_close(l.d);
	remove_programs();
}

/* The same bytes at the same place are not asked about again. */
static void what_is_known_is_not_asked_again(void)
{
	const struct disasm_range r = { .start = START, .around = START + 2 * WORD, .count = 2 };
	static const uint8_t code[8 * WORD] = "BAD, and then whatever there is";
	uint8_t changed[8 * WORD];
	struct listing l;
	size_t at;

	list(&l, "echo '/*7f0a00000120*/ MOV R2, RZ ;'", 0);
	write_program("echo '/*7f0a00000120*/ EXIT ;'");
	TEST_EQ(disasm_lines(l.d, code, sizeof(code), &r, l.lines, &at), 2);
	TEST_STR(l.lines[0].text, "MOV R2, RZ");
	memcpy(changed, code, sizeof(code));
	changed[2 * WORD]++;
	TEST_EQ(disasm_lines(l.d, changed, sizeof(changed), &r, l.lines, &at), 2);
	TEST_STR(l.lines[0].text, "EXIT");
	disasm_close(l.d);
	remove_programs();
}

/* A word that says how three others are scheduled belongs to them. */
static void old_processors_have_bundles(void)
{
	const struct disasm_options o = { .cpu = "sm_52", .program = place.program };
	const struct disasm_range r = { .start = START, .around = START + 48, .before = 0, .count = 1 };
	auto_call(disasm_closep) struct disasm *d = NULL;
	struct disasm_line line;
	size_t at;

	write_program("[ \"$4\" = 0x7f0a00000120 ] && echo '/*7f0a00000130*/ MOV R2, RZ ;'");
	TEST_EQ_FATAL(disasm_open(&o, &d), 0);
	TEST_EQ(disasm_lines(d, (const uint8_t[64]){ 0 }, 64, &r, &line, &at), 1);
	TEST_STR(line.text, "MOV R2, RZ");
	remove_programs();
}

/*
 * It takes whole bundles at their places alone: what is missing in front gets a first word that says
 * how to schedule them, and what is missing behind is zeros.
 */
static void it_is_given_whole_bundles(void)
{
	static const char script[] =
		"exec /bin/bash -c 'LC_ALL=C; first=; n=0; while IFS= read -r -d \"\" x; do\n"
		"[ $n = 0 ] && first=$x; n=$((n + ${#x} + 1)); done </dev/stdin; n=$((n + ${#x}))\n"
		"[ $n = 64 ] || { echo $n bytes >&2; exit 1; }\n"
		"printf -v control \"\\xf6\\x07\\x20\\xfe\"; [ \"$first\" = \"$control\" ] || { echo control >&2; exit 1; }\n"
		"echo \"/*7f0a00000110*/ MOV R2, RZ ;\"; echo \"/*7f0a00000118*/ EXIT ;\"\n"
		"echo \"/*7f0a00000128*/ NOP ;\"' - \"$@\"";
	const struct disasm_options o = { .cpu = "sm_61", .program = place.program };
	const struct disasm_range r = { .start = START + 16, .around = START + 16, .count = 4 };
	const uint8_t code[40] = { 1 };
	auto_call(disasm_closep) struct disasm *d = NULL;
	struct disasm_line lines[4];
	size_t at;

	write_program(script);
	TEST_EQ_FATAL(disasm_open(&o, &d), 0);
	TEST_EQ(disasm_lines(d, code, sizeof(code), &r, lines, &at), 4);
	TEST_STR(disasm_note(d) ? disasm_note(d) : "", "");
	TEST_STR(lines[0].text, "MOV R2, RZ");
	TEST_STR(lines[1].text, "EXIT");
	TEST_EQ(lines[2].decoded, false);
	TEST_STR(lines[3].text, "NOP");
	remove_programs();
}

/* Of those processors its errors, and no others, have addresses that are cut to 32 bits. */
static void old_processors_have_short_addresses(void)
{
	static const struct { const char *said; uint32_t word; size_t blanked; int gone; } rows[] = {
		{ "error : at address 0x00000108", 8, 1, 1 },
		{ "error : at address 0x7f0a00000108", 8, 1, 1 },
		{ "error : at address 0x00000104", 8, 0, -1 },
		{ "error : at address 0x00000120", 8, 0, -1 },
		{ "error : at address 0x00000110", 16, 0, -1 },
		{ "error : at address 0x7f0a00000110", 16, 1, 1 },
		{ "at address 0x00000100\nat address 0x", 8, 1, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint8_t bytes[32];
		size_t n = sizeof(bytes) / rows[i].word, size = strlen(rows[i].said);

		memset(bytes, 1, sizeof(bytes));
		TEST_ROW_EQ(i,
			    disasm_nvidia_blank(test_tail_dup(rows[i].said, size), size, START,
						rows[i].word, bytes, n),
			    rows[i].blanked);
		for (size_t k = 0; k < n; k++)
			TEST_ROW_EQ(i, bytes[k * rows[i].word], (int)k != rows[i].gone);
	}
}

/* One that fails now and then goes on being asked. */
static void failures_are_forgotten_when_it_works(void)
{
	const struct disasm_range r = { .start = START, .around = START, .count = 1 };
	struct listing l;
	size_t at;

	list(&l, "exit 4", 0);
	for (uint8_t i = 1; i < 8; i++) {
		const uint8_t code[8 * WORD] = { i };

		write_program(i % 2 ? "echo '/*7f0a00000100*/ NOP ;'" : "exit 4");
		TEST_ROW_EQ(i, disasm_lines(l.d, code, sizeof(code), &r, l.lines, &at), 1);
		TEST_ROW_EQ(i, l.lines[0].decoded, i % 2);
	}
	disasm_close(l.d);
	remove_programs();
}

/* Signals can be sent, and others stopped, through a descriptor as well. */
static void it_changes_descriptors_of_its_own_alone(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	int status = -1, fd = open("/dev/null", O_RDWR | O_CLOEXEC), bad = 0;
	pid_t pid;

	CU_ASSERT_FATAL(fd >= 0);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		if (disasm_confine_program() < 0)
			_exit(99);
		bad |= (fcntl(fd, F_GETFL) < 0) << 0;
		bad |= (fcntl(fd, F_SETFD, 0) < 0) << 1;
		bad |= (fcntl(fd, F_DUPFD_CLOEXEC, 10) < 0) << 2;
		bad |= (fcntl(fd, F_SETOWN, getppid()) == 0 || errno != EPERM) << 3;
		bad |= (fcntl(fd, F_SETSIG, SIGKILL) == 0 || errno != EPERM) << 4;
		bad |= (fcntl(fd, F_SETFL, O_ASYNC) == 0 || errno != EPERM) << 5;
		bad |= (fcntl(fd, F_SETLK, &lock) == 0 || errno != EPERM) << 6;
		bad |= (fcntl(fd, F_SETLEASE, F_RDLCK) == 0 || errno != EPERM) << 7;
		_exit(bad);
	}
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(status, 0);
	close(fd);
}

static void it_is_looked_for_where_toolkits_are(void)
{
	char path[PATH_MAX], *old = strdup(getenv("PATH")), relative[PATH_MAX];

	write_program("");
	snprintf(relative, sizeof(relative), ":.:relative:%s", place.directory);
	setenv("PATH", relative, 1);
	CU_ASSERT(disasm_find_nvdisasm(path));
	TEST_STR(path, place.program);
	/* Not what somebody has left in the directory one happens to be in. */
	TEST_EQ(chdir(place.directory), 0);
	CU_ASSERT(access("nvdisasm", X_OK) == 0);
	setenv("PATH", ":.:/nonexistent", 1);
	CU_ASSERT(!disasm_find_nvdisasm(path) || strcmp(path, "/usr/local/cuda/bin/nvdisasm") == 0);
	TEST_EQ(chdir("/"), 0);
	unlink(place.program);
	TEST_EQ(mkdir(place.made, 0700), 0);
	snprintf(relative, sizeof(relative), "%s/bin", place.made);
	TEST_EQ(mkdir(relative, 0700), 0);
	snprintf(place.program, sizeof(place.program), "%s/made/bin/nvdisasm", place.directory);
	write_program("");
	setenv("CUDA_HOME", place.made, 1);
	CU_ASSERT(disasm_find_nvdisasm(path));
	TEST_STR(path, place.program);
	unsetenv("CUDA_HOME");
	setenv("PATH", old, 1);
	unlink(place.program);
	rmdir(relative);
	rmdir(place.made);
	remove_programs();
	free(old);
}

/* What another user could have put in place of it is not run, wherever a link in PATH leads. */
static void it_is_not_run_where_others_can_write(void)
{
	char path[PATH_MAX], link[PATH_MAX], inside[PATH_MAX], *old = strdup(getenv("PATH"));

	write_program("");
	TEST_EQ(mkdir(place.made, 0700), 0);
	snprintf(inside, sizeof(inside), "%s/nvdisasm", place.made);
	TEST_EQ(rename(place.program, inside), 0);
	snprintf(link, sizeof(link), "%s/nvdisasm", place.directory);
	TEST_EQ(symlink(inside, link), 0);
	setenv("PATH", place.directory, 1);
	CU_ASSERT(disasm_find_nvdisasm(path));
	TEST_STR(path, inside);
	for (unsigned i = 0; i < 4; i++) {
		const char *what = i < 2 ? inside : i < 3 ? place.made : place.directory;

		TEST_EQ(chmod(what, i == 1 ? 0720 : 0702), 0);
		CU_ASSERT(!disasm_find_nvdisasm(path) || strcmp(path, inside) != 0);
		TEST_EQ(chmod(what, 0700), 0);
	}
	if (geteuid() == 0) {
		TEST_EQ(chown(place.made, 65534, 65534), 0);
		CU_ASSERT(!disasm_find_nvdisasm(path) || strcmp(path, inside) != 0);
	}
	setenv("PATH", old, 1);
	unlink(link);
	unlink(inside);
	rmdir(place.made);
	remove_programs();
	free(old);
}

static void what_it_prints_is_bounded(void)
{
	static const struct { const char *text; const char *first; } rows[] = {
		{ "", "" },
		{ "/*", "" },
		{ "/*100*/", "" },
		{ "/*100*/ ;", "" },
		{ "/*100*/ A ;\n/*100*/ B ;", "A" },
		{ "/*f0*/ A ;", "" },	/* in front */
		{ "/*120*/ A ;", "" },	/* behind */
		{ "/*108*/ A ;", "" },	/* in the middle */
		{ "/*10000000000000100*/ A ;", "" },
		{ "x /*100*/ A ;", "" },
		{ "/*0x100*/ A ;", "" },
		{ "\r\t/*100*/\tA B ;\r\n", "A B" },
	};
	char texts[2][DISASM_TEXT_SIZE], line[DISASM_TEXT_SIZE + 32];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);

		memset(texts, 0, sizeof(texts));
		TEST_ROW_EQ(i, disasm_nvidia_parse(test_tail_dup(rows[i].text, size), size, 0x100, 16, texts, 2),
			    rows[i].first[0] != '\0');
		TEST_ROW_STR(i, texts[0], rows[i].first);
	}
	for (size_t n = DISASM_TEXT_SIZE - 2; n < DISASM_TEXT_SIZE + 2; n++) {
		int size = snprintf(line, sizeof(line), "/*110*/%0*d", (int)n, 1);

		memset(texts, 0, sizeof(texts));
		TEST_ROW_EQ(n, disasm_nvidia_parse(line, (size_t)size, 0x100, 16, texts, 2),
			    n < DISASM_TEXT_SIZE);
		TEST_ROW_EQ(n, strlen(texts[1]), n < DISASM_TEXT_SIZE ? n : 0);
	}
}

TEST_SUITE(nvdisasm, TEST(instructions_are_what_it_prints), TEST(unknown_words_stay_words),
	   TEST(programs_that_fail_are_named), TEST(programs_that_hang_are_ended),
	   TEST(the_program_can_only_answer), TEST(what_is_known_is_not_asked_again),
	   TEST(old_processors_have_bundles), TEST(it_is_given_whole_bundles),
	   TEST(old_processors_have_short_addresses), TEST(failures_are_forgotten_when_it_works),
	   TEST(it_changes_descriptors_of_its_own_alone), TEST(it_is_looked_for_where_toolkits_are),
	   TEST(it_is_not_run_where_others_can_write),
	   TEST(what_it_prints_is_bounded));
