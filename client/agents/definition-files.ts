/** Exports definitions as files and reads definitions from files. */

import type { AgentDetail, DefinitionFormat } from '../api.ts'
import { saveText } from '../components/save-text.ts'
import { t } from '../strings/language.ts'

/** Downloads the saved definition as a YAML or Markdown file that is named after the agent. */
export function exportDefinition({ yaml: text, format, definition }: AgentDetail): void {
  const name = definition.name
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-+|-+$/g, '')
    .toLowerCase()
  const [extension, mediaType] = format === 'yaml' ? ['yaml', 'application/yaml'] : ['md', 'text/markdown']
  saveText(text, `${name === '' ? 'agent' : name.slice(0, 80)}.${extension}`, mediaType)
}

export interface ImportedDefinition {
  readonly filename: string
  readonly text: string
  readonly format: DefinitionFormat
}

const MAX_BYTES = 256 * 1024

/**
 * Reads a definition. Throws an error with a message for the user if the file is not a text file with a known
 * extension, or is larger than 256 KiB.
 */
export async function importDefinition(file: File): Promise<ImportedDefinition> {
  const format = formatOf(file.name)
  if (format === undefined) throw new Error(t('agents.wrongFile', { name: file.name }))
  if (file.size > MAX_BYTES) {
    throw new Error(t('agents.largeFile', { name: file.name, size: Math.ceil(file.size / 1024) }))
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    return { filename: file.name, text, format }
  } catch {
    throw new Error(t('agents.unreadableFile', { name: file.name }))
  }
}

function formatOf(filename: string): DefinitionFormat | undefined {
  if (/\.ya?ml$/i.test(filename)) return 'yaml'
  return /\.(?:md|markdown)$/i.test(filename) ? 'markdown' : undefined
}
