/** Shows the fields of a JSON object as labels with values. */
import { useFrame } from '../frame-context.ts'
import type { Language } from '../strings/strings.ts'
import { showUnseen } from './exact-text.ts'

interface Props {
  /** Undefined if the data is not an object; only the exact data is then shown. */
  readonly values: Readonly<Record<string, unknown>> | undefined
  /** Labels by field name; other fields use their names. */
  readonly labels: Readonly<Record<string, string>> | undefined
}

/** Maximum number of fields; the exact data contains the rest. */
const MAX_FIELDS = 20
const MAX_LENGTH = 400

export function LabelledValues({ values, labels }: Props) {
  const { language } = useFrame()
  const fields = Object.entries(values ?? {}).slice(0, MAX_FIELDS)
  if (fields.length === 0) return null
  return (
    <dl className="values">
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt dir="auto">{showUnseen(labelOf(labels, name))}</dt>
          <dd dir="auto">{showUnseen(renderValue(value, language))}</dd>
        </div>
      ))}
    </dl>
  )
}

function labelOf(labels: Props['labels'], name: string): string {
  return labels !== undefined && Object.hasOwn(labels, name) ? (labels[name] as string) : toWords(name)
}

/** Returns a name such as `roomNumber` or `room_number` as "Room number". */
function toWords(name: string): string {
  const words = name
    .replaceAll(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
  if (words === '') return name
  return words.charAt(0).toUpperCase() + words.slice(1).replaceAll(/\p{Lu}(?=\p{Ll})/gu, toLower)
}

function toLower(letter: string): string {
  return letter.toLowerCase()
}

function renderValue(value: unknown, language: Language): string {
  const { tag, strings } = language
  if (typeof value === 'boolean') return value ? strings.tool.yes : strings.tool.no
  if (typeof value === 'number')
    return new Intl.NumberFormat(tag, { maximumFractionDigits: 20 }).format(value)
  if (value === null || value === '' || (Array.isArray(value) && value.length === 0))
    return strings.tool.nothing
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object'))
    return cut(value.map((one) => renderValue(one, language)).join(', '))
  return cut(typeof value === 'string' ? value : JSON.stringify(value))
}

function cut(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text
}
