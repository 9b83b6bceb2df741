/** What the address of the uploads says. */
import { present, type RawSearch, textOf } from '../lib/search-values.ts'

export interface UploadsSearch {
  /** The artifact after which the page of the list begins. */
  readonly after?: string | undefined
  /** The artifact that is looked at. */
  readonly artifact?: string | undefined
}

export function parseUploadsSearch({ after, artifact }: RawSearch): UploadsSearch {
  return present({ after: textOf(after), artifact: textOf(artifact) })
}
