// Starts the program of the remaining command line, waits for it and ends with its exit status. Wine's own process of
// a program with threads is now and then killed at its end, and the status that Linux sees is then that of the kill.
#include <windows.h>

int main(void) {
    wchar_t *line = GetCommandLineW();
    int quoted = 0;
    while (*line && (quoted || (*line != L' ' && *line != L'\t'))) {
        if (*line == L'"')
            quoted = !quoted;
        line++;
    }
    while (*line == L' ' || *line == L'\t')
        line++;
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION started;
    DWORD status;
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &started))
        return 126;
    // Only the program itself holds its standard input and output open.
    FreeConsole();
    CloseHandle(GetStdHandle(STD_INPUT_HANDLE));
    CloseHandle(GetStdHandle(STD_OUTPUT_HANDLE));
    CloseHandle(GetStdHandle(STD_ERROR_HANDLE));
    WaitForSingleObject(started.hProcess, INFINITE);
    if (!GetExitCodeProcess(started.hProcess, &status))
        return 126;
    ExitProcess(status);
}
