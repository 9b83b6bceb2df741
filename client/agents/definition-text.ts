/** Reads and edits a definition's text, in YAML or in Markdown with front matter. */
import { parseDocument } from 'yaml'
import type { DefinitionFormat } from '../api.ts'
import { emptiedPath, isRecord, isSame, type Path, valueAt } from './object-paths.ts'
import { editYaml } from './yaml-edit.ts'

/** Parses a definition; returns undefined if the text is not a YAML mapping. */
export function readDefinition(text: string, format: DefinitionFormat): Record<string, unknown> | undefined {
  const parts = splitText(text, format)
  if (parts === undefined) return undefined
  const document = parseDocument(parts.configuration)
  if (document.errors.length > 0) return undefined
  const value: unknown = document.toJS() ?? {}
  if (!isRecord(value)) return undefined
  return parts.instructions === undefined ? value : { ...value, instructions: parts.instructions }
}

/** Mappings that turn a feature on, even if they are empty. */
const switches: readonly Path[] = [['attachments'], ['conversations', 'handover']]

/**
 * Returns the text with one value changed; `undefined` removes the value and any parents that become empty,
 * except for mappings that turn a feature on.
 */
export function changeDefinition(text: string, format: DefinitionFormat, path: Path, value: unknown): string {
  const parts = splitText(text, format)
  const whole = readDefinition(text, format)
  if (parts === undefined || whole === undefined || isSame(valueAt(whole, path), value)) return text
  if (parts.instructions !== undefined && path[0] === 'instructions') {
    return `${parts.before}${parts.configuration}${parts.after}${String(value ?? '')}`
  }
  const place = value === undefined ? emptiedPath(whole, path) : path
  const kept = switches.find((one) => place.length <= one.length && isBelow(path, one))
  const configuration =
    kept === undefined ? editYaml(parts.configuration, place, value) : editYaml(parts.configuration, kept, {})
  return `${parts.before}${configuration}${parts.after}${parts.instructions ?? ''}`
}

function isBelow(path: Path, ancestor: Path): boolean {
  return path.length > ancestor.length && ancestor.every((key, index) => path[index] === key)
}

interface TextParts {
  readonly before: string
  readonly configuration: string
  readonly after: string
  /** The Markdown text below the front matter; undefined for YAML. */
  readonly instructions: string | undefined
}

function splitText(text: string, format: DefinitionFormat): TextParts | undefined {
  if (format === 'yaml') return { before: '', configuration: text, after: '', instructions: undefined }
  const match = /^(\uFEFF?---[ \t]*\r?\n)([\s\S]*?)(^---[ \t]*(?:\r?\n){0,2})/m.exec(text)
  if (match === null || match.index !== 0) return undefined
  const [all, before = '', configuration = '', after = ''] = match
  return { before, configuration, after, instructions: text.slice(all.length) }
}
