/* SPDX-License-Identifier: MIT */
#include "agentd/worker/kfd/fault_journal.h"
#include "testlib.h"

/* Notes of one source add up; striking part of them leaves the rest; the last one clears the mark. */
static void notes_are_struck_out(void)
{
	static struct kfd_journal l;

	kfd_journal_append(&l, true, 0, 0);
	TEST_EQ(l.magic, 0);
	kfd_journal_append(&l, true, 0, 1);
	kfd_journal_append(&l, true, 0, 2);
	kfd_journal_append(&l, false, 0, 4);
	TEST_EQ(l.magic, KFD_JOURNAL_MAGIC);
	TEST_EQ(l.entries[0].exceptions, 3);
	TEST_EQ(l.entries[1].exceptions, 4);
	kfd_journal_erase(&l, true, 0, 5);
	TEST_EQ(l.entries[0].exceptions, 2);
	kfd_journal_erase(&l, true, 7, 2);
	kfd_journal_erase(&l, true, 0, 2);
	TEST_EQ(l.magic, KFD_JOURNAL_MAGIC);
	kfd_journal_erase(&l, false, 0, 4);
	TEST_EQ(l.magic, 0);
}

/* More sources than there is room for: what fits is kept, the rest does no harm. */
static void a_full_record_stays_whole(void)
{
	static struct kfd_journal l;

	for (uint32_t i = 0; i < KFD_JOURNAL_ENTRIES + 10; i++)
		kfd_journal_append(&l, true, i, 1);
	TEST_EQ(l.entries[KFD_JOURNAL_ENTRIES - 1].id, KFD_JOURNAL_ENTRIES - 1);
	for (uint32_t i = 0; i < KFD_JOURNAL_ENTRIES + 10; i++)
		kfd_journal_erase(&l, true, i, 1);
	TEST_EQ(l.magic, 0);
	kfd_journal_append(NULL, true, 1, 1);
	kfd_journal_erase(NULL, true, 1, 1);
	kfd_journal_close(NULL);
}

/* Faults and the answer are struck out on their own; the monitor looks at both words. */
static void an_answer_is_struck_out(void)
{
	static struct kfd_journal l = { .answer = 1 };

	kfd_journal_append(&l, true, 0, 1);
	kfd_journal_answered(&l);
	TEST_EQ(l.answer, 0);
	TEST_EQ(l.magic, KFD_JOURNAL_MAGIC);
	l.answer = 1;
	kfd_journal_erase(&l, true, 0, 1);
	TEST_EQ(l.magic, 0);
	TEST_EQ(l.answer, 1);
}

TEST_SUITE(worker_kfd_journal, TEST(an_answer_is_struck_out), TEST(notes_are_struck_out),
	   TEST(a_full_record_stays_whole));
