/**
 * Fails on wording that docs/writing.md rules out and on dead references, in comments, test titles, messages
 * and pages.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { parseSync, Visitor } from 'rolldown/utils'

interface Text {
  readonly file: string
  readonly line: number
  readonly text: string
}

interface Rule {
  readonly pattern: RegExp
  readonly advice: string
}

/** Words and patterns to avoid, with advice on what to write instead. */
const dialect: readonly Rule[] = [
  {
    pattern: /\b(lie|lies|lay|lying) (in|on|at|under|there|here|beside)\b/i,
    advice: 'use "is in" or "is stored in"',
  },
  {
    pattern: /\b(stand|stands|stood) (in|on|at|under|there|here|for itself)\b/i,
    advice: 'use "is in" or "is listed in"',
  },
  { pattern: /\bbeside\b/i, advice: 'use "with" or "next to"' },
  {
    pattern: /\b(so many|so long|so much|so often)\b(?! (that|as)\b)/i,
    advice: 'name the number or the timeout',
  },
  { pattern: /\b(goes|go|went|going) on\b/i, advice: 'use "continues"' },
  {
    pattern: /\b(comes|came) to (it|an end|its end|nothing|the same)\b/i,
    advice: 'use "results in" or "ends"',
  },
  { pattern: /\banew\b/i, advice: 'use "again"' },
  { pattern: /\bof (its|their|his|her|one's|our|your) own\b/i, advice: 'use "its own" or "separate"' },
  { pattern: /\bany ?more\b(?! than)/i, advice: 'use "no longer"' },
  { pattern: /\bmeanwhile\b/i, advice: 'say what happens at the same time' },
  {
    // The widget says to visitors that nobody is available, because it does not know who could be.
    pattern:
      /\b(whoever|whomever|whatever|somebody|someone|nobody(?! is available)|no one|anybody|anyone|everybody)\b/i,
    advice: 'name the actor',
  },
  { pattern: /\b(is|are) none\b/i, advice: 'use "is not a …"' },
  { pattern: /\bmend(s|ed|ing)?\b/i, advice: 'use "fix"' },
  { pattern: /\b(tell|tells|told)\b/i, advice: 'use "report", "publish" or "distinguish"' },
  { pattern: /\bis away\b|\bare away\b/i, advice: 'use "unavailable"' },
  { pattern: /\bno longer than\b/i, advice: 'use "at most"' },
  {
    pattern: /\b(thereof|hereby|therein|wherein|thither|whence|hence|lest|ere|nought|naught)\b/i,
    advice: 'use an everyday word',
  },
]

/** Matches a sentence whose subject is a clause, such as "What is done with bytes once …". */
const clauseSubject: Rule = {
  pattern: /^(What|Who|Whose|Where|Whoever|How|That which)\b(?![^.!?]*\?)/,
  advice: 'start with the actor or a noun, not with a clause',
}

/** Matches references to documents outside this repository. */
const foreignReference: Rule = {
  pattern: /\b(Decisions?|Security|Contract|Finding|Issue|Task|Measured): ?#?\w|\bshared\/\w+\.md\b/,
  advice: 'cite an ADR, a page in docs/ or an RFC',
}

const verb = /\b(is|are|has|have|can|may|must|does|do|was|were|will|be|\w+(?:[^s]s|ss?es|ies))\b/

const { values } = parseArgs({
  options: { count: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const roots = ['src', 'client', 'widget', 'test', 'scripts', 'packages', 'examples']
const isGenerated = (path: string) => /(^|\/)(node_modules|dist|generated)\//.test(path)
const sources = roots
  .flatMap((root) => globSync(`${root}/**/*.{ts,tsx,mjs,js}`))
  .filter((path) => !isGenerated(path))
const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...globSync('docs/**/*.md')].filter((page) =>
  existsSync(page),
)

const faults = [...sources.flatMap(checkSource), ...pages.flatMap(checkPage)]
if (values.count) {
  const counts = new Map<string, number>()
  for (const { file } of faults) {
    const folder = file.split('/').slice(0, 2).join('/')
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  for (const [folder, count] of [...counts].sort(([, a], [, b]) => b - a))
    process.stdout.write(`${count}\t${folder}\n`)
} else {
  for (const { file, line, text } of faults) process.stderr.write(`${file}:${line} ${text}\n`)
}
process.exitCode = faults.length > 0 ? 1 : 0

function checkSource(file: string): Text[] {
  const code = readFileSync(file, 'utf8')
  const { program, comments } = parseSync(file, code)
  const found: Text[] = []
  const add = (position: number, fault: string) =>
    found.push({ file, line: code.slice(0, position).split('\n').length, text: fault })
  for (const { value, start } of comments) {
    const text = value
      .replaceAll(/^\s*\*+ ?/gm, '')
      .replaceAll(/\s+/g, ' ')
      .trim()
    if (/^(biome-ignore|@ts-|<reference|@vitest)/.test(text)) continue
    for (const fault of findFaults(text, [...dialect, clauseSubject, foreignReference])) add(start, fault)
    for (const fault of findDeadReferences(file, text)) add(start, fault)
    if (start === 0 && !verb.test(firstSentence(text)))
      add(start, `the file header has no verb: "${firstSentence(text)}"`)
  }
  const check = (text: string, start: number) => {
    if (text.trim().split(/\s+/).length < 3) return
    for (const fault of findFaults(text, dialect)) add(start, fault)
  }
  // Checks strings of at least three words; shorter ones are mostly names.
  new Visitor({
    Literal: ({ value, start }) => {
      if (typeof value === 'string') check(value, start)
    },
    TemplateElement: ({ value, start }) => check(value.raw, start),
    JSXText: ({ value, start }) => check(value, start),
  }).visit(program)
  return found
}

function checkPage(file: string): Text[] {
  const prose = readFileSync(file, 'utf8').replaceAll(/^```.*?^```/gms, (block) =>
    block.replaceAll(/[^\n]/g, ''),
  )
  return prose.split('\n').flatMap((text, index) => {
    const plain = text.replaceAll(/`[^`]*`/g, '')
    return [...findFaults(plain, [...dialect, foreignReference]), ...findDeadReferences(file, text)].map(
      (fault) => ({
        file,
        line: index + 1,
        text: fault,
      }),
    )
  })
}

function findFaults(text: string, rules: readonly Rule[]): string[] {
  // Ignores code, which contains names instead of prose.
  const plain = text.replaceAll(/`[^`]*`/g, '')
  return rules.flatMap(({ pattern, advice }) => {
    const match = pattern.exec(plain)
    return match === null ? [] : [`"${match[0]}": ${advice}`]
  })
}

/** Returns ADR numbers without a file in docs/adr, and pages that do not exist in docs/. */
function findDeadReferences(file: string, text: string): string[] {
  const numbers = [...text.matchAll(/\bADR[ -](\d{4})\b/g)].map(([, number = '']) => number)
  const dead = numbers
    .filter((number) => globSync(`docs/adr/${number}-*.md`).length === 0)
    .map((number) => `ADR ${number}`)
  const named = [...text.matchAll(/\bdocs\/[\w/.-]+\.md/g)].map(([path]) => path)
  const missing = named.filter(
    (path) => !existsSync(path) && !existsSync(join(dirname(file), relative('.', path))),
  )
  return [...dead, ...missing].map((name) => `refers to ${name}, which does not exist`)
}

function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text
}
