/** What the service and the process it has read pictures, captions and projects tell each other. */
import type { Outcome } from './job.ts'
import type { Verdict } from './refusal.ts'

/** The one word on the process's command line, as JSON. */
export interface WorkerTask {
  readonly kind: 'thumbnail' | 'captions' | 'project'
  readonly source: string
  /** Where it may write. */
  readonly folder: string
}

/** The one line it prints, as JSON. */
export type WorkerAnswer =
  | Outcome
  | { readonly refused: { readonly verdict: Verdict; readonly reason: string } }
