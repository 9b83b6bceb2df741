/** Runs `parley` commands in the test's own process, which is faster than starting a process. */
import { runCommand } from '../../src/cli/program.ts'
import type { ProcessResult, RunOptions } from './process.ts'

/** Commands run one at a time because they change the process's working directory and environment. */
let last: Promise<unknown> = Promise.resolve()

/** Like `runParley`, but in this process and only for commands that exit on their own. */
export function runCommandInProcess(
  words: readonly string[],
  options: Pick<RunOptions, 'folder' | 'env'>,
): Promise<ProcessResult> {
  const running = last.then(() => run(words, options))
  last = running.catch(() => {})
  return running
}

async function run(
  words: readonly string[],
  { folder, env = {} }: Pick<RunOptions, 'folder' | 'env'>,
): Promise<ProcessResult> {
  const { exit, exitCode } = process
  const before = { folder: process.cwd(), env: process.env }
  const captured = [capture(process.stdout), capture(process.stderr)] as const
  process.chdir(folder)
  process.env = { PATH: before.env.PATH, LOG_LEVEL: 'warn', ...env }
  process.exitCode = undefined
  // The command calls `process.exit`, which must not stop the test run.
  process.exit = (() => {}) as typeof process.exit
  try {
    await runCommand(['node', 'parley', ...words])
    const code = Number(process.exitCode ?? 0)
    const [stdout, stderr] = captured.map(({ text }) => text()) as [string, string]
    return { code, signal: null, stdout, stderr }
  } finally {
    for (const { restore } of captured) restore()
    process.chdir(before.folder)
    process.env = before.env
    process.exitCode = exitCode
    process.exit = exit
  }
}

/** Captures the stream's output until `restore` is called. */
function capture(stream: NodeJS.WriteStream) {
  let text = ''
  const { write } = stream
  const listeners = stream.listeners('error')
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    const written = rest.at(-1)
    if (typeof written === 'function') written()
    return true
  }
  return {
    text: () => text,
    restore() {
      stream.write = write
      for (const listener of stream.listeners('error')) {
        if (!listeners.includes(listener)) stream.off('error', listener as () => void)
      }
    },
  }
}
