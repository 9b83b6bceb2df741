/** What the log is told of errors on the way to MCP servers: never what was sent or answered. */

const LONGEST = 200

/** An error of a connection; a server may have its say in it, but not at length. */
export function describeTrouble(error: unknown): object {
  if (!(error instanceof Error)) return {}
  const { name, message, cause } = error
  return { error: name, code: codeOf(error) ?? codeOf(cause), problem: message.slice(0, LONGEST) }
}

/** An error of a message: the library's sentences quote it after a colon, and parsers before. */
export function describeMessageTrouble(error: unknown): object {
  if (!(error instanceof Error)) return {}
  const [problem = ''] = error.message.split(':', 1)
  return { ...describeTrouble(error), problem: /^[\w '/-]+$/.test(problem) ? problem : undefined }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code
}
