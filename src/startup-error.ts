/** The error of a start that cannot succeed until somebody changes something outside the program. */

/** Its message is a sentence for the operator, printed as it is; no stack is needed to act on it. */
export class StartupError extends Error {
  override readonly name: string = 'StartupError'
}
