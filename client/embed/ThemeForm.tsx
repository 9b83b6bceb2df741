/** Edits the appearance of the widget: the fields of `embed.theme`, the texts, and options of the page. */
import {
  Accordion,
  ColorInput,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core'
import { type ReactNode, useId } from 'react'
import { defaultAppearance } from '../../widget/appearance.ts'
import {
  ChoiceField,
  FormProvider,
  LongTextField,
  NumberField,
  TextField,
  useField,
} from '../agents/edit/fields.tsx'
import type { Check, Draft } from '../agents/edit/use-editor.ts'
import { valueAt } from '../agents/object-paths.ts'
import type { PageOptions } from './appearance.ts'
import { ContrastReport } from './ContrastReport.tsx'
import type { ThemeColors } from './check-contrast.ts'

interface ThemeFormProps {
  readonly draft: Draft
  readonly check: Check
  readonly page: PageOptions
  readonly onPageChange: (page: PageOptions) => void
}

const themePath = (field: string) => ['embed', 'theme', field]

/** The sections, with the fields of `embed` whose errors they show. */
const sections = {
  Brand: /^theme\.(colorScheme|primaryColor|avatar|logo|header\w+|font)$/,
  Launcher: /^theme\.(launcher\w+|teaser\w*|position)$/,
  Window: /^theme\.(radius|width|height|density)$/,
  Text: /^(title|greeting)$/,
} as const

export function ThemeForm({ draft, check, page, onPageChange }: ThemeFormProps) {
  const colors = (valueAt(draft.value, ['embed', 'theme']) ?? {}) as ThemeColors
  return (
    <FormProvider value={{ draft, check }}>
      <Accordion multiple defaultValue={['Brand']} order={3} variant="separated" className="theme-form">
        <Section name="Brand" check={check}>
          <BrandFields colors={colors} />
        </Section>
        <Section name="Launcher" check={check}>
          <LauncherFields />
        </Section>
        <Section name="Window" check={check}>
          <WindowFields />
        </Section>
        <Section name="Text" check={check}>
          <TextFields page={page} onPageChange={onPageChange} />
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
  const count = check.problems.filter(({ path }) =>
    sections[name].test(path?.replace(/^embed\./, '') ?? ''),
  ).length
  return (
    <Accordion.Item value={name}>
      <Accordion.Control>
        {name}
        {count === 0 ? null : (
          <Text span size="sm" c="var(--mantine-color-error)" ml="xs">
            {count === 1 ? '1 error' : `${count} errors`}
          </Text>
        )}
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">{children}</Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}

function BrandFields({ colors }: { readonly colors: ThemeColors }) {
  const hasHeaderColor = colors.headerStyle === 'solid' || colors.headerStyle === 'gradient'
  return (
    <>
      <SegmentField
        path={themePath('colorScheme')}
        label="Color scheme"
        choices={[
          { value: 'auto', label: 'Auto' },
          { value: 'light', label: 'Light' },
          { value: 'dark', label: 'Dark' },
        ]}
      />
      <ColorField
        path={themePath('primaryColor')}
        label="Accent color"
        standard={defaultAppearance.primaryColor}
      />
      <SegmentField
        path={themePath('headerStyle')}
        label="Header"
        choices={[
          { value: 'plain', label: 'Plain' },
          { value: 'solid', label: 'Solid' },
          { value: 'gradient', label: 'Gradient' },
        ]}
      />
      {hasHeaderColor ? (
        <ColorField
          path={themePath('headerColor')}
          label="Header color"
          standard="Same as the accent color"
        />
      ) : null}
      <ContrastReport colors={colors} />
      <TextField
        path={themePath('avatar')}
        label="Avatar"
        about="URL of an image next to the title and the answers"
        placeholder="https://www.example.com/avatar.png"
      />
      <TextField
        path={themePath('logo')}
        label="Logo"
        about="URL of an image instead of the title. Images from another site appear in the preview after you save."
        placeholder="https://www.example.com/logo.svg"
      />
      <ChoiceField
        path={themePath('font')}
        label="Typeface"
        choices={[
          { value: 'inter', label: 'Inter' },
          { value: 'system', label: 'System' },
          { value: 'rounded', label: 'Rounded' },
          { value: 'serif', label: 'Serif' },
          { value: 'mono', label: 'Monospace' },
        ]}
      />
    </>
  )
}

function LauncherFields() {
  return (
    <>
      <ChoiceField
        path={themePath('launcherIcon')}
        label="Icon"
        choices={[
          { value: 'chat', label: 'Chat bubble' },
          { value: 'question', label: 'Question mark' },
          { value: 'sparkles', label: 'Sparkles' },
          { value: 'wave', label: 'Waving hand' },
          { value: 'avatar', label: 'Avatar' },
        ]}
      />
      <TextField path={themePath('launcherLabel')} label="Label" placeholder="None" />
      <TextField
        path={themePath('teaser')}
        label="Teaser"
        about="Text of a bubble above the closed button. The preview shows it immediately."
        placeholder="None"
      />
      <NumberField
        path={themePath('teaserDelay')}
        label="Seconds until the teaser appears"
        placeholder={`${defaultAppearance.teaserDelay}`}
        min={0}
        max={3600}
      />
      <SegmentField
        path={themePath('position')}
        label="Position"
        choices={[
          { value: 'bottom-right', label: 'Right' },
          { value: 'bottom-left', label: 'Left' },
        ]}
      />
    </>
  )
}

function WindowFields() {
  const { width, height, radius } = defaultAppearance
  return (
    <>
      <SimpleGrid cols={2} spacing="sm">
        <NumberField
          path={themePath('width')}
          label="Width (px)"
          placeholder={`${width}`}
          min={280}
          max={800}
        />
        <NumberField
          path={themePath('height')}
          label="Height (px)"
          placeholder={`${height}`}
          min={320}
          max={1200}
        />
      </SimpleGrid>
      <NumberField
        path={themePath('radius')}
        label="Corner radius (px)"
        placeholder={`${radius}`}
        min={0}
        max={24}
      />
      <SegmentField
        path={themePath('density')}
        label="Density"
        choices={[
          { value: 'comfortable', label: 'Comfortable' },
          { value: 'compact', label: 'Compact' },
        ]}
      />
    </>
  )
}

function TextFields({ page, onPageChange }: Pick<ThemeFormProps, 'page' | 'onPageChange'>) {
  const set = (changes: Partial<PageOptions>) => onPageChange({ ...page, ...changes })
  return (
    <>
      <TextField path={['embed', 'title']} label="Title" placeholder="Agent name" />
      <LongTextField path={['embed', 'greeting']} label="Greeting" placeholder="None" minRows={1} />
      <Text size="xs" c="dimmed">
        The following options are only part of the code. They are not saved to the agent.
      </Text>
      <TextInput
        label="Welcome message"
        placeholder="None (shown above an empty chat)"
        value={page.welcomeMessage}
        onChange={(event) => set({ welcomeMessage: event.currentTarget.value })}
      />
      <TextInput
        label="Placeholder"
        placeholder="Type a message..."
        value={page.placeholder}
        onChange={(event) => set({ placeholder: event.currentTarget.value })}
      />
      <Switch
        label="Open automatically"
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
      placeholder={standard}
      value={text}
      error={error}
      disabled={isDisabled}
      fixOnBlur={false}
      onChange={(color) => set(color === '' ? undefined : color)}
      eyeDropperButtonProps={{ 'aria-label': 'Pick a color from the screen' }}
    />
  )
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
