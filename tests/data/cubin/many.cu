// A kernel with many variables of several kinds, all of which are needed to its end.

struct pair {
	int first;
	float second;
};

extern "C" __global__ void many(int *out, float *scale, long n, char tag)
{
	int a = threadIdx.x, b = a + 1, c = b * a, d = c - 7, e = d ^ b, f = e << 1, g = f | 3, h = g % 11;
	long i = n * a, j = i + b, k = j - c, l = k ^ i;
	float m = scale[a], o = m * 2.0f, p = o + m, q = p - 1.0f;
	double r = q, s = r * 3.0;
	short t = (short)a, u = (short)(t + tag);
	pair v = { a, m }, w = { b, o };
	bool x = a > b, y = c < d;

	for (int z = 0; z < tag; z++)
		out[a] += z;
	out[a] += a + b + c + d + e + f + g + h + (int)(i + j + k + l) + (int)(m + o + p + q) + (int)(r + s) + t + u + v.first +
		  (int)w.second + x + y;
}
