/**
 * The process that reads pictures, captions and projects, started by `worker-run.ts` with one task and gone after it: what breaks
 * or blocks it does so to nobody else. Without a task it looks whether it could work. Security: 2.9.
 */
import { ConversionRejection, type WorkerAnswer, type WorkerTask } from './job.ts'

const [, , text] = process.argv
if (text === undefined) await import('./pictures.ts')
else {
  const answer = JSON.stringify(await work(JSON.parse(text) as WorkerTask))
  // What still reads is of no use any more.
  process.stdout.write(answer, () => process.exit(0))
}

async function work(task: WorkerTask): Promise<WorkerAnswer> {
  try {
    return await perform(task)
  } catch (error) {
    if (!(error instanceof ConversionRejection)) throw error
    return { refused: { verdict: error.verdict, reason: error.message } }
  }
}

/** Only the code of the task's own kind is loaded. */
async function perform({ kind, source, folder }: WorkerTask): Promise<WorkerAnswer> {
  if (kind === 'thumbnail') return (await import('./pictures.ts')).convertPicture(source, folder)
  if (kind === 'captions') return (await import('./captions.ts')).convertCaptions(source, folder)
  return (await import('./archive.ts')).checkProject(source)
}
