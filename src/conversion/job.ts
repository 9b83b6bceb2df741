/** What a conversion is handed, and what comes of it. */
import type { Guard } from './guard.ts'
import type { Programs } from './programs.ts'

/** What an uploaded file is meant to be. Contract: Artifact status (`kind`). */
export type ConversionKind = 'video' | 'project' | 'captions' | 'thumbnail'

/** One conversion under way. */
export interface Job {
  readonly programs: Programs
  readonly guard: Guard
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
