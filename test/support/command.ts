/** Runs `parley` commands in the test's own process, which saves loading all modules again. */
import { runCommand } from '../../src/cli/program.ts'
import type { Ended, RunOptions } from './process.ts'

/** Commands run one at a time, because a process has one working directory, environment and standard output. */
let last: Promise<unknown> = Promise.resolve()

/** Like `runParley`, for commands that exit by themselves. */
export function runCommandHere(
  words: readonly string[],
  options: Pick<RunOptions, 'folder' | 'env'>,
): Promise<Ended> {
  const running = last.then(() => run(words, options))
  last = running.catch(() => {})
  return running
}

async function run(
  words: readonly string[],
  { folder, env = {} }: Pick<RunOptions, 'folder' | 'env'>,
): Promise<Ended> {
  const { exit, exitCode } = process
  const before = { folder: process.cwd(), env: process.env }
  const captured = [capture(process.stdout), capture(process.stderr)] as const
  process.chdir(folder)
  process.env = { PATH: before.env.PATH, LOG_LEVEL: 'warn', ...env }
  process.exitCode = undefined
  // The command's call of `process.exit` must not end the test.
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

/** Captures what is written to the stream until it is restored. */
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
