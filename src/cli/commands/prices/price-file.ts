/** Reads a file with prices in the format of the configuration file. */
import { readFile } from 'node:fs/promises'
import { ServiceError, StartupError } from '../../../lib/errors.ts'
import { isJsonObject, type Path } from '../../../lib/formats/json.ts'
import { keyOffsetOf, readYaml, renderFault, type YamlMapping } from '../../../lib/formats/yaml.ts'
import { type PricedModel, splitId } from '../../../models/price-overrides.ts'
import { PriceEntries, type PriceEntry } from '../../../prices/schema.ts'

interface FilePrice extends PricedModel {
  readonly entries: readonly PriceEntry[]
}

/**
 * Reads a YAML or JSON file: a mapping of `provider/model` to prices, or a file that has this mapping in
 * `prices`. @throws StartupError with one line for each problem.
 */
export async function readPriceFile(path: string): Promise<FilePrice[]> {
  const mapping = await readMapping(path)
  const { prices } = mapping.value
  const [start, given]: [Path, unknown] = prices === undefined ? [[], mapping.value] : [['prices'], prices]
  const faults: { readonly path: Path; readonly problem: string }[] = []
  if (!isJsonObject(given))
    faults.push({ path: start, problem: 'must be a mapping of models to lists of prices' })
  const found = Object.entries(isJsonObject(given) ? given : {}).map(([id, value]): FilePrice => {
    if (!/^[^/]+\/./.test(id))
      faults.push({ path: [...start, id], problem: 'must be a provider and a model, such as far/my-model' })
    const { data = [], error } = PriceEntries.safeParse(value)
    for (const issue of error?.issues ?? [])
      faults.push({ path: [...start, id, ...issue.path], problem: issue.message })
    return { ...splitId(id), entries: data }
  })
  if (faults.length === 0) return found
  const lines = faults.map(
    (fault) =>
      `${path}: ${renderFault(mapping.text, keyOffsetOf(mapping, fault.path), fault.path, fault.problem)}.`,
  )
  throw new StartupError(lines.join('\n'))
}

async function readMapping(path: string): Promise<YamlMapping> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(`${path}: cannot read the file (${error.code ?? 'unknown reason'}).`)
  })
  try {
    return readYaml(new TextDecoder().decode(bytes))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new StartupError(`${path}: ${error.message}.`)
  }
}
