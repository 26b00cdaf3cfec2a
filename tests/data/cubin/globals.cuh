// Variables outside of functions, in two units.
extern __device__ long shared_by_both;
