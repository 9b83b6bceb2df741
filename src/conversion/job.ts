/** What a conversion is handed, and what comes of it. */

import { ServiceError } from '../lib/errors.ts'
import type { Programs } from './programs.ts'
import type { Sandbox } from './sandbox.ts'

/** What an uploaded file is meant to be. Contract: Artifact status (`kind`). */
export type ConversionKind = 'video' | 'project' | 'captions' | 'thumbnail'

/** One conversion under way. */
export interface Job {
  readonly programs: Programs
  readonly sandbox: Sandbox
  /** The uploaded file, which is only read. */
  readonly source: string
  readonly sizeBytes: number
  /** An empty folder of this job alone, gone after it. */
  readonly folder: string
  /** Aborted when nobody wants the result any more, and when the time is over. */
  readonly signal: AbortSignal
  /** 0 to 1, never less than before. */
  readonly onProgress: (share: number) => void
}

/** A file that was made in the job's folder. */
export interface MadeFile {
  readonly name: string
  readonly mediaType: string
}

/** What came of a job; `reason` says why the file is left as it is although that was not wanted. */
export type Outcome =
  | { readonly made: MadeFile; readonly poster?: MadeFile }
  | { readonly unchanged: { readonly mediaType: string; readonly reason?: string } }

/**
 * `dangerous`: a bomb, or names that leave their folder; nobody may have it, so it is removed. `unconvertible`: another try may
 * do better, and in the end it is served as it was uploaded, as an attachment. Decision: 9.
 */
export type Verdict = 'dangerous' | 'unconvertible'

/** A refusal; its message may be shown to anybody, its cause is for the log. */
export class ConversionRejection extends Error {
  override readonly name = 'ConversionRefusal'
  readonly verdict: Verdict

  constructor(verdict: Verdict, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause })
    this.verdict = verdict
  }
}

/** Whether a program failed because the disk is full, by what it printed. */
export function isDiskFull(printed: string): boolean {
  return /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/.test(printed)
}

/** The error of a machine without room for what is made; the content is not at fault. */
export function diskFull(cause: unknown): ServiceError {
  return new ServiceError('storage_full', 'There is no room to convert files here at the moment.', { cause })
}

/** The refusal of what must not be handed out. */
export function dangerous(reason: string): ConversionRejection {
  return new ConversionRejection('dangerous', reason)
}

/** The refusal of what cannot be made fit for the web. */
export function unconvertible(reason: string, cause?: unknown): ConversionRejection {
  return new ConversionRejection('unconvertible', reason, cause)
}

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
