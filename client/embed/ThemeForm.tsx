/**
 * Edits the widget's appearance: the fields of `embed.theme`, the texts, the image hosts, and the options that
 * only a page can set.
 */
import {
  Accordion,
  ColorInput,
  ColorSwatch,
  SegmentedControl,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core'
import { type ReactNode, useId } from 'react'
import {
  ChoiceField,
  FormProvider,
  LinesField,
  LongTextField,
  NumberField,
  TextField,
  useField,
} from '../agents/edit/fields.tsx'
import type { Check, Draft } from '../agents/edit/use-editor.ts'
import { valueAt } from '../agents/object-paths.ts'
import { t } from '../strings/language.ts'
import type { PageOptions } from './appearance.ts'
import { ContrastReport } from './ContrastReport.tsx'
import type { ThemeColors } from './check-contrast.ts'
import { ImageField } from './ImageField.tsx'
import {
  brandFields,
  type Choices,
  colorFields,
  headerColor,
  launcherFields,
  type ThemeField,
  windowFields,
} from './theme-fields.ts'

interface ThemeFormProps {
  readonly draft: Draft
  readonly check: Check
  readonly page: PageOptions
  readonly onPageChange: (page: PageOptions) => void
}

const themePath = (field: string) => ['embed', 'theme', field]
const pathsOf = (fields: readonly ThemeField[]) => fields.map(({ field }) => themePath(field).join('.'))

/** The paths whose errors each section shows. */
const sections = {
  brand: pathsOf([...colorFields, headerColor, ...brandFields]),
  launcher: pathsOf(launcherFields),
  window: pathsOf(windowFields),
  text: ['embed.title', 'embed.greeting'],
  images: ['embed.imageHosts'],
} as const

export function ThemeForm({ draft, check, page, onPageChange }: ThemeFormProps) {
  const colors = (valueAt(draft.value, ['embed', 'theme']) ?? {}) as ThemeColors
  const hasHeaderColor = colors.headerStyle === 'solid' || colors.headerStyle === 'gradient'
  return (
    <FormProvider value={{ draft, check }}>
      <Accordion multiple defaultValue={['brand']} order={3} variant="separated" className="theme-form">
        <Section name="brand" check={check}>
          <Fields of={hasHeaderColor ? [...colorFields, headerColor] : colorFields} />
          <ContrastReport colors={colors} />
          <Fields of={brandFields} />
        </Section>
        <Section name="launcher" check={check}>
          <Fields of={launcherFields} />
        </Section>
        <Section name="window" check={check}>
          <Fields of={windowFields} />
        </Section>
        <Section name="text" check={check}>
          <TextFields page={page} onPageChange={onPageChange} />
        </Section>
        <Section name="images" check={check}>
          <LinesField
            path={['embed', 'imageHosts']}
            label={t('embed.imageHosts')}
            about={t('embed.imageHostsAbout')}
            placeholder="images.example.com"
          />
        </Section>
      </Accordion>
    </FormProvider>
  )
}

interface SectionProps {
  readonly name: keyof typeof sections
  readonly check: Check
  readonly children: ReactNode
}

/** A closed section shows the number of its errors. */
function Section({ name, check, children }: SectionProps) {
  const paths: readonly string[] = sections[name]
  const count = check.problems.filter(({ path }) =>
    paths.includes(path?.replace(/\[\d+\]$/, '') ?? ''),
  ).length
  return (
    <Accordion.Item value={name}>
      <Accordion.Control>
        {t(`embed.${name}`)}{' '}
        {count === 0 ? null : (
          <Text span size="sm" c="var(--mantine-color-error)">
            {t('embed.errors', { count })}
          </Text>
        )}
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">{children}</Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}

function Fields({ of: fields }: { readonly of: readonly ThemeField[] }) {
  return fields.map((field) => <Field key={field.field} field={field} />)
}

function Field({ field }: { readonly field: ThemeField }) {
  const shared = { path: themePath(field.field), label: t(field.label) }
  const about = field.about === undefined ? {} : { about: t(field.about) }
  switch (field.kind) {
    case 'segments':
      return <SegmentField {...shared} choices={toOptions(field.choices)} />
    case 'choice':
      return <ChoiceField {...shared} choices={toOptions(field.choices)} />
    case 'color':
      return (
        <ColorField
          {...shared}
          standard={typeof field.standard === 'string' ? field.standard : t(field.standard.text)}
        />
      )
    case 'image':
      return <ImageField {...shared} about={about.about ?? ''} example={field.example} />
    case 'text':
      return <TextField {...shared} {...about} placeholder={t('embed.noValue')} />
    case 'number':
      return <NumberField {...shared} placeholder={`${field.standard}`} min={field.min} max={field.max} />
  }
}

function toOptions(choices: Choices) {
  return Object.entries(choices).map(([value, label]) => ({ value, label: t(label) }))
}

function TextFields({ page, onPageChange }: Pick<ThemeFormProps, 'page' | 'onPageChange'>) {
  const set = (changes: Partial<PageOptions>) => onPageChange({ ...page, ...changes })
  return (
    <>
      <TextField path={['embed', 'title']} label={t('embed.titleField')} placeholder={t('embed.agentName')} />
      <LongTextField
        path={['embed', 'greeting']}
        label={t('embed.greeting')}
        placeholder={t('embed.noValue')}
        minRows={1}
      />
      <Text size="xs" c="dimmed">
        {t('embed.onlyCode')}
      </Text>
      <TextInput
        label={t('embed.welcome')}
        placeholder={t('embed.welcomeHelp')}
        value={page.welcomeMessage}
        onChange={(event) => set({ welcomeMessage: event.currentTarget.value })}
      />
      <TextInput
        label={t('embed.placeholder')}
        placeholder={t('embed.placeholderHelp')}
        value={page.placeholder}
        onChange={(event) => set({ placeholder: event.currentTarget.value })}
      />
      <Switch
        label={t('embed.autoOpen')}
        checked={page.autoOpen}
        onChange={(event) => set({ autoOpen: event.currentTarget.checked })}
      />
    </>
  )
}

interface ColorFieldProps {
  readonly path: readonly string[]
  readonly label: string
  /** Describes the default. */
  readonly standard: string
}

function ColorField({ path, label, standard }: ColorFieldProps) {
  const { text, error, isDisabled, attributes, set } = useField(path)
  return (
    <ColorInput
      {...attributes}
      label={label}
      format="hex"
      withPreview={false}
      leftSection={<ColorSwatch color={text === '' ? toSwatch(standard) : text} size={18} />}
      placeholder={standard}
      value={text}
      error={error}
      disabled={isDisabled}
      fixOnBlur={false}
      onChange={(color) => set(color === '' ? undefined : color)}
      eyeDropperButtonProps={{ 'aria-label': t('embed.pickColor') }}
    />
  )
}

/** Shows the default color; a default in words has none. */
function toSwatch(standard: string): string {
  return standard.startsWith('#') ? standard : 'transparent'
}

interface SegmentFieldProps {
  readonly path: readonly string[]
  readonly label: string
  /** The default is first; selecting it removes the key from the definition. */
  readonly choices: readonly { readonly value: string; readonly label: string }[]
}

function SegmentField({ path, label, choices }: SegmentFieldProps) {
  const { text, error, isDisabled, attributes, set } = useField(path)
  const id = useId()
  const standard = choices[0]?.value
  return (
    <div>
      <Text id={id} size="sm" fw={500} mb={4}>
        {label}
      </Text>
      <SegmentedControl
        {...attributes}
        aria-labelledby={id}
        fullWidth
        data={[...choices]}
        value={text === '' ? (standard ?? '') : text}
        disabled={isDisabled}
        onChange={(value) => set(value === standard ? undefined : value)}
      />
      {error === undefined ? null : (
        <Text size="xs" c="var(--mantine-color-error)" mt={4}>
          {error}
        </Text>
      )}
    </div>
  )
}
