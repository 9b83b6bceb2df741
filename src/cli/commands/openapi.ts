/** The `openapi` command prints the OpenAPI document or checks that `openapi.json` is up to date. */
import { readFile } from 'node:fs/promises'
import { StartupError } from '../../lib/errors.ts'
import { renderApiDocument } from '../../server/api.ts'
import { print } from '../output.ts'

const committed = new URL('../../../openapi.json', import.meta.url)

export async function openapi(isCheck: boolean): Promise<void> {
  const text = JSON.stringify(renderApiDocument(), undefined, 2)
  if (!isCheck) return print(text)
  const known = await readFile(committed, 'utf8').catch(() => '')
  if (known !== `${text}\n`) throw new StartupError('openapi.json is out of date; run `npm run openapi`.')
}
