/** Converts pictures, captions and projects in a sandboxed worker process. */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import {
  ConversionRejection,
  diskFull,
  isDiskFull,
  type Job,
  type Outcome,
  unconvertible,
  type WorkerTask,
} from './job.ts'
import type { SandboxedResult, Tool } from './sandbox.ts'

const MadeFile = z.object({ name: z.string().regex(/^[a-z]+\.[a-z]+$/), mediaType: z.string() })
const Answer = z.union([
  z.object({ made: MadeFile }),
  z.object({ unchanged: z.object({ mediaType: z.string() }) }),
  z.object({ refused: z.object({ verdict: z.enum(['dangerous', 'unconvertible']), reason: z.string() }) }),
])

const workerPath = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url),
)
const sourceFolder = fileURLToPath(new URL('../', import.meta.url))
const packageFile = fileURLToPath(new URL('../../package.json', import.meta.url))

/** Node reserves 1.3 GiB of address space and libvips 0.5 GiB; both leave most of it unused. */
const RESERVED_BYTES = 2 * 1024 ** 3
const OUTPUT_BYTES = 64 * 1024 ** 2

/** Describes the worker process, which can read the service's code and packages but not its data. */
export function createWorkerTool(): Tool {
  const sharp = createRequire(import.meta.url).resolve('sharp')
  // The outermost `node_modules` folder, which contains all packages.
  const [above] = sharp.split(/[\\/]node_modules[\\/]/)
  return {
    program: process.execPath,
    reads: [sourceFolder, packageFile, `${above}/node_modules`],
    check: [workerPath],
    reservedBytes: RESERVED_BYTES,
  }
}

export async function runWorker(job: Job, kind: WorkerTask['kind'], tool: Tool): Promise<Outcome> {
  const { source, folder, signal } = job
  const task: WorkerTask = { kind, source, folder }
  const args = [workerPath, JSON.stringify(task)]
  const end = await job.sandbox.run(tool, { args, source, folder, signal, outputBytes: OUTPUT_BYTES })
  const answer = parseAnswer(end)
  if ('refused' in answer) throw new ConversionRejection(answer.refused.verdict, answer.refused.reason)
  return answer
}

function parseAnswer(end: SandboxedResult): z.infer<typeof Answer> {
  try {
    if (end.code === 0) return Answer.parse(JSON.parse(end.stdout))
  } catch {
    // Treats invalid output as a failure, because a compromised process may print anything.
  }
  const cause = new Error(`the process ended with ${end.killedBy ?? end.code}: ${end.stderr.trim()}`)
  if (isDiskFull(end.stderr)) throw diskFull(cause)
  throw unconvertible('Converting the file exceeds the memory or time limit.', cause)
}
