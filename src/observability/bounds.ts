/** The bounds that measured times are told by, in seconds. */

/** Requests: from what is answered from memory to an upload of an hour. */
export const requestBounds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
]

/** Answers of models, whole or their first word. */
export const answerBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

/** Jobs: a picture takes a moment, a video minutes. */
export const jobBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]

/** Pauses of the garbage collector. */
export const pauseBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
