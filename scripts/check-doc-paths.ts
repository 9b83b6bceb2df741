/** Fails when the documentation names a path that the repository does not contain. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Text in backticks counts as a path when it starts with one of these folders. */
const pathStart = /^(\.ci|\.github|client|deploy|docs|examples|packages|scripts|src|test|widget)\//

/** ADRs are excluded, because they are history and may name deleted files. */
const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { exclude: ['docs/adr'] })]

const missing = pages
  .filter((page) => existsSync(page))
  .flatMap((page) => listMissingPaths(page).map((path) => `${page} names ${path}, which does not exist`))
for (const line of missing) process.stderr.write(`${line}\n`)
process.exitCode = missing.length > 0 ? 1 : 0

/** Lists the missing paths that a page names. `*` matches any name; paths with `<…>` are placeholders. */
function listMissingPaths(page: string): string[] {
  const prose = readFileSync(page, 'utf8').replaceAll(/^```.*?^```/gms, '')
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target.replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^([a-z]+:|\/)/.test(target))
    .map((target) => join(dirname(page), target))
  const words = [...prose.matchAll(/`([^`\s]+)`/g)]
    .map(([, word = '']) => word)
    .filter((word) => pathStart.test(word))
  return [...links, ...words].filter((path) => !path.includes('<') && globSync(path).length === 0)
}
