/* SPDX-License-Identifier: MIT */
/* Arguments of every kind that OpenCL passes by value or by address. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

typedef struct {
	float x, y, z;
	int count;
	char name[64];
} shape;

__kernel void types(__global const int *table, unsigned int n, float f, char c, unsigned short s, double d,
		    long l, __local float *tile, shape whole, __constant float *weights)
{
	__global int *out = (__global int *)table;

	tile[0] = f + c + s + weights[0];
	out[n] = (int)(tile[0] + d + l + whole.x + whole.count + whole.name[n]);
}
