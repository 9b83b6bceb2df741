/**
 * Runs one conversion task in a separate process, so that a crash or hang affects nothing else. Without a
 * task, only checks that it can start.
 */
import { ConversionRejection, type WorkerAnswer, type WorkerTask } from './job.ts'

const [, , text] = process.argv
if (text === undefined) await import('./pictures.ts')
else {
  const answer = JSON.stringify(await work(JSON.parse(text) as WorkerTask))
  // Exits explicitly, because file reads may still be pending.
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

async function perform({ kind, source, folder }: WorkerTask): Promise<WorkerAnswer> {
  if (kind === 'thumbnail') return (await import('./pictures.ts')).convertPicture(source, folder)
  if (kind === 'captions') return (await import('./captions.ts')).convertCaptions(source, folder)
  return (await import('./archive.ts')).checkProject(source)
}
