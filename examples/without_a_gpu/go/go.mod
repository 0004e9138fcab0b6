module example.com/devicebytes

go 1.19
