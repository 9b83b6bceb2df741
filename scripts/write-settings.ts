/**
 * Writes `.env.example` and `docs/configuration.md` from the settings; with `--check`, fails if one of them
 * is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { settingGroups } from '../src/config/settings.ts'

interface Documented {
  readonly name: string
  /** The description and the rule for valid values. */
  readonly help: string
  readonly defaultText: string
  readonly isSecret: boolean
}

const groups = Object.entries(settingGroups).map(([title, settings]) => ({
  title,
  settings: Object.entries(settings).map(([name, setting]): Documented => {
    const rule = setting.unwrap().meta()?.rule
    return {
      name,
      help: `${setting.description}${rule === undefined ? '' : ` Must be ${rule}.`}`,
      defaultText: 'defaultValue' in setting.def ? String(setting.def.defaultValue) : '',
      isSecret: setting.meta()?.isSecret === true,
    }
  }),
}))

const introduction = `# Configuration

This page lists all settings of the server and the \`parley\` commands.

\`\`\`sh
PORT=8080 PARLEY_DATA_DIR=/var/lib/parley npm start
\`\`\`

- Set environment variables, or write the settings to the file \`.env\` in the working directory. Environment variables take precedence.
- Parley treats an empty value as unset and ignores spaces around a value.
- To read a secret from a file, set the variable that ends in \`_FILE\` to the path of the file. Do not set both variables.
- To use [several providers](providers.md#several-providers) or [MCP servers](tools.md#mcp-servers), list them in a YAML file.
- The server does not start if a setting is invalid. \`npm run parley -- doctor\` checks all settings and prints a solution for each problem.

\`npm run settings\` generates this page from \`src/config/settings.ts\`.`

const documents = { '.env.example': renderEnvExample(), 'docs/configuration.md': renderPage() }

for (const [path, text] of Object.entries(documents)) {
  if (!process.argv.includes('--check')) writeFileSync(path, text)
  else if (readFileSync(path, 'utf8') !== text) {
    process.stderr.write(`${path} is out of date; run \`npm run settings\`.\n`)
    process.exitCode = 1
  }
}

function renderEnvExample(): string {
  const sections = groups.map(({ title, settings }) =>
    [`## ${title}`, ...settings.map(renderVariable)].join('\n\n'),
  )
  return `${[
    '# This file lists all settings of Parley with their defaults. To change a setting, remove the # in front of it. Parley\n# treats an empty value as unset. To read a secret from a file, set the variable that ends in _FILE to the path of the file.\n# `npm run settings` generates this file.',
    ...sections,
  ].join('\n\n')}\n`
}

function renderVariable({ name, help, defaultText, isSecret }: Documented): string {
  return [...wrap(help), `#${name}=${defaultText}`, ...(isSecret ? [`#${name}_FILE=`] : [])].join('\n')
}

function wrap(text: string): string[] {
  return (text.match(/.{1,118}(?= |$)/g) ?? []).map((line) => `# ${line.trim()}`)
}

function renderPage(): string {
  const sections = groups.map(({ title, settings }) => {
    const rows = settings.map(({ name, help, defaultText, isSecret }) => {
      const names = isSecret ? `\`${name}\`<br>\`${name}_FILE\`` : `\`${name}\``
      return `| ${names} | ${defaultText === '' ? 'unset' : `\`${defaultText}\``} | ${linkPages(help)} |`
    })
    const [heading, page] = title.split(/ \(docs\/(.*)\)$/)
    const link = page === undefined ? [] : [`See [${page}](${page}).\n`]
    return [`## ${heading}\n`, ...link, '| Setting | Default | Description |', '|---|---|---|', ...rows].join(
      '\n',
    )
  })
  return `${[introduction, ...sections].join('\n\n')}\n`
}

function linkPages(text: string): string {
  return text.replace(/ \(docs\/([\w-]+\.md)\)/g, ' ([more]($1))')
}
