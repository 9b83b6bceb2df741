/** What the address of the files says. */
import { present, type RawSearch, textOf } from '../lib/search-values.ts'

export interface FilesSearch {
  /** The file after which the page of the list begins. */
  readonly after?: string | undefined
}

export function parseFilesSearch({ after }: RawSearch): FilesSearch {
  return present({ after: textOf(after) })
}
