/** How much there is to do with uploads, in all processes together. */
import type { Dependencies } from './dependencies.ts'
import { countWaitingJobs } from './jobs/store.ts'
import { countUploading } from './upkeep-store.ts'

/** Uploads that are not complete, and jobs that nobody has taken, by kind. */
export async function countArtifactWork({ db }: Pick<Dependencies, 'db'>) {
  const [openUploads, waitingJobs] = await Promise.all([countUploading(db), countWaitingJobs(db)])
  return { openUploads, waitingJobs }
}
