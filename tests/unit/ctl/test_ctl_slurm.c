/* SPDX-License-Identifier: MIT */
#include "ctl/job/slurm.h"
#include "testlib.h"

/* As Slurm 22.05 printed it; the last lines are of no job, or are broken. */
static const char listed[] = "PID      JOBID    STEPID   LOCALID GLOBALID\n"
			     "16098    3        0        0       0       \n"
			     "16053    3        batch    0       0\n"
			     "16066    3        batch    -       -\n"
			     "16098    3        0        0       0\n"
			     "17391    33       4        0       0\n"
			     "-1       3        0        0       0\n"
			     "99999999999 3 0 0 0\n"
			     "\n   \n17 \n18 3";

static void reads_processes_of_a_job(void)
{
	uint32_t list[8];

	TEST_EQ_FATAL(slurm_read_pids(listed, sizeof(listed) - 1, "3", list, 8), 4);
	TEST_EQ(list[0], 16098);
	TEST_EQ(list[1], 16053);
	TEST_EQ(list[2], 16066);
	TEST_EQ(list[3], 18);
	TEST_EQ(slurm_read_pids(listed, sizeof(listed) - 1, "33", list, 8), 1);
	TEST_EQ(slurm_read_pids(listed, sizeof(listed) - 1, "4", list, 8), 0);
	TEST_EQ(slurm_read_pids(listed, sizeof(listed) - 1, "3", list, 2), 2);
	TEST_EQ(slurm_read_pids("", 0, "3", list, 2), 0);
}

TEST_SUITE(ctl_slurm, TEST(reads_processes_of_a_job));
